#include "base/text/shell_word.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace sluice::shell_word_test {
namespace {

// What bash takes it for.
std::string as_a_shell_reads(const std::string& word) {
  ::setenv("TOLD", ("printf '%s|' " + word).c_str(), 1);
  std::FILE* const shell = ::popen("exec bash -c \"$TOLD\"", "r");
  std::string read;
  for (int c = std::fgetc(shell); c != EOF; c = std::fgetc(shell)) read += static_cast<char>(c);
  ::pclose(shell);
  return read;
}

TEST(ShellWord, IsOneWordToAShell) {
  for (const std::string text : {"runs/ppo", "a b", "", "it's", "$HOME/*", "a;rm", "~x", "é\"`\\", "'", "line\nend", "-x",
                                 "\x1b[31m'\\é\t1", "w\xff\x80 7", "\x7f"})
    EXPECT_EQ(as_a_shell_reads(shell_word(text)), text + "|");
}

TEST(ShellWord, StaysAsItIsWhereThatIsTheSame) {
  EXPECT_EQ(shell_word("runs/ppo-2,seed=1/é.toml"), "runs/ppo-2,seed=1/é.toml");
  EXPECT_EQ(shell_word("my run"), "'my run'");
  EXPECT_EQ(shell_word("my\nrun\xff"), "$'my\\012run\\377'");
}

}  // namespace
}  // namespace sluice::shell_word_test
