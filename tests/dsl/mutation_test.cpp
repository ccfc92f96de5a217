// Damaged files: whatever the bytes are, there is a pipeline or there are problems that can be shown.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "base/numbers/random.h"
#include "base/text/strings.h"
#include "dsl/parse.h"
#include "tests/dsl/working_folder.h"
#include "tests/dsl/write.h"
#include "tests/engine/known_kinds.h"

namespace sluice::dsl::mutation_test {
namespace {

std::string sample() {
  std::ifstream stream(golden_folder() / "ppo.toml");
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

// Reads `text`; a result without problems must survive being written and read again, and problems must stand inside the text.
void survives(const std::string& text, const std::string& what) {
  const LoadResult result = parse_pipeline(text, "x.toml", "", {});
  if (result.problems.empty()) {
    const std::string written = to_toml(result.spec);
    const LoadResult again = parse_pipeline(written, "y.toml", "", {});
    ASSERT_EQ(render(again.problems), "") << what << "\n" << written;
    ASSERT_EQ(to_toml(again.spec), written) << what;
    return;
  }
  ASSERT_TRUE(is_utf8(render(result.problems))) << what;
  engine::testing::expect_known_kinds(result.problems);
  const auto lines = static_cast<int>(split(text, '\n').size());
  for (const Problem& problem : result.problems) {
    ASSERT_TRUE(problem.where.known()) << what << ": " << problem.message;
    ASSERT_GE(problem.where.line, 1) << what;
    ASSERT_LE(problem.where.line, lines) << what;
    ASSERT_GE(problem.where.length, 1) << what;
  }
}

TEST(Mutation, EveryTruncationIsReadOrReported) {
  const std::string text = sample();
  ASSERT_GT(text.size(), 500u);
  for (size_t size = 0; size <= text.size(); ++size) survives(text.substr(0, size), "cut at " + std::to_string(size));
}

TEST(Mutation, FlippedBitsAreReadOrReported) {
  const std::string text = sample();
  RandomStream random(1, 0);
  for (int i = 0; i < 6000; ++i) {
    std::string damaged = text;
    for (uint64_t flips = 1 + random.below(4); flips > 0; --flips) {
      damaged[random.below(damaged.size())] ^= static_cast<char>(1u << random.below(8));
    }
    survives(damaged, "round " + std::to_string(i));
  }
}

TEST(Mutation, MixedUpTokensAreReadOrReported) {
  const std::vector<std::string> tokens = {"[",       "]",        "[[",         "]]",     "{",   "}",    "=",  ".",       ",",
                                           "\"",      "'",        "\"\"\"",     "'''",    "\n",  "\r\n", "\r", " ",       "#",
                                           "nodes",   "models",   "type",       "inputs", "on",  "a",    "1",  "-",       "+",
                                           "0x",      "1e9",      "1979-05-27", "inf",    "nan", "true", "\\", "\\u00e9", "é",
                                           "plugins", "pipeline", "false",      "_",      ":",   "\xff"};
  RandomStream random(2, 0);
  for (int i = 0; i < 30000; ++i) {
    std::string text;
    for (uint64_t count = random.below(24); count > 0; --count) text += tokens[random.below(tokens.size())];
    survives(text, "round " + std::to_string(i) + ": " + text);
  }
}

TEST(Mutation, DamagedOverridesAreAppliedOrReported) {
  const std::vector<std::string> tokens = {"nodes", "generate", ".", "=", "\"", "'", "[",     "]",  "{", "}",
                                           "1",     "\n",       " ", "#", ",",  "x", "false", "\\", "é", "\xff"};
  const std::string text = sample();
  RandomStream random(3, 0);
  for (int i = 0; i < 3000; ++i) {
    std::string argument = random.below(2) == 0 ? "nodes.generate." : "";
    for (uint64_t count = random.below(10); count > 0; --count) argument += tokens[random.below(tokens.size())];
    const LoadResult result = parse_pipeline(text, "x.toml", "", {argument});
    ASSERT_TRUE(is_utf8(render(result.problems))) << argument;
    if (!result.problems.empty()) continue;
    ASSERT_EQ(render(parse_pipeline(to_toml(result.spec), "y.toml", "", {}).problems), "") << argument;
  }
}

}  // namespace
}  // namespace sluice::dsl::mutation_test
