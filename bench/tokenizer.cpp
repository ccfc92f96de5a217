// tokenizer FOLDER TEXT: how long our tokenizer takes. bench/tokenizers_compare.py asks it in turn with the `tokenizers` package.
//
// Each line on the standard input is answered by one JSON line {"seconds", "ids"}:
//   text    encode the file as one text
//   lines   encode each of its lines
//   sum     nothing is timed; a sum over the ids of the text, to compare
#include <chrono>
#include <cstdio>
#include <iostream>
#include <string>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/text/strings.h"
#include "text/tokenizer/tokenizer.h"

namespace sluice {
namespace {

using text::Tokenizer;

size_t encode(const Tokenizer& tokenizer, const std::vector<std::string>& texts, Tokenizer::Workspace& workspace) {
  size_t ids = 0;
  for (const std::string& text : texts) ids += tokenizer.encode(text, false, workspace).size();
  return ids;
}

Json timed(const Tokenizer& tokenizer, const std::vector<std::string>& texts, Tokenizer::Workspace& workspace) {
  const auto start = std::chrono::steady_clock::now();
  const size_t ids = encode(tokenizer, texts, workspace);
  return {{"seconds", std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count()}, {"ids", ids}};
}

Json summed(const Tokenizer& tokenizer, const std::string& text) {
  uint64_t sum = 0;
  for (const int64_t id : tokenizer.encode(text)) sum = (31 * sum + static_cast<uint64_t>(id)) % 1'000'000'007;
  return {{"sum", sum}};
}

}  // namespace
}  // namespace sluice

int main(int argc, char** argv) {
  using namespace sluice;
  if (argc != 3) {
    std::fprintf(stderr, "usage: %s FOLDER TEXT\n", argv[0]);
    return 64;
  }
  const auto tokenizer = text::Tokenizer::load(argv[1]);
  const std::string text = read_file(argv[2]);
  const auto lines = split(text, '\n');
  text::Tokenizer::Workspace workspace;
  for (std::string question; std::getline(std::cin, question);) {
    const Json answer = question == "text"    ? timed(tokenizer, {text}, workspace)
                        : question == "lines" ? timed(tokenizer, lines, workspace)
                                              : summed(tokenizer, text);
    std::cout << answer.dump() << std::endl;
  }
  return 0;
}
