// sluice_tokenizer_lines FOLDER: answers for a program that compares tokenizers, one JSON value a line.
//
//   "text"      ->  {"ids": [...], "decoded": "..."}      with special tokens
//   [1, 2, 3]   ->  {"decoded": "...", "skipped": "..."}  with special tokens, and without
//
// Every text is also decoded as a stream; a difference ends the program with 1.
#include <cstdio>
#include <iostream>
#include <string>

#include "base/json/json.h"
#include "text/tokenizer/stream_decoder.h"

namespace sluice::text {
namespace {

std::string decode(const Tokenizer& tokenizer, const std::vector<int64_t>& ids, bool skip_special) {
  StreamDecoder stream(tokenizer, skip_special);
  std::string streamed;
  for (const int64_t id : ids) streamed += stream.push(id);
  streamed += stream.finish();
  std::string text = tokenizer.decode(ids, skip_special);
  if (streamed != text) throw std::runtime_error("streamed " + Json(streamed).dump() + ", decoded " + Json(text).dump());
  return text;
}

Json answer(const Tokenizer& tokenizer, const Json& question, Tokenizer::Workspace& workspace) {
  if (question.is_string()) {
    const auto ids = tokenizer.encode(question.get<std::string>(), true, workspace);
    return {{"ids", ids}, {"decoded", decode(tokenizer, ids, false)}};
  }
  const auto ids = question.get<std::vector<int64_t>>();
  return {{"decoded", decode(tokenizer, ids, false)}, {"skipped", decode(tokenizer, ids, true)}};
}

}  // namespace
}  // namespace sluice::text

int main(int argc, char** argv) {
  using namespace sluice;
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
    return 64;
  }
  try {
    const auto tokenizer = text::Tokenizer::load(argv[1]);
    text::Tokenizer::Workspace workspace;
    std::ios::sync_with_stdio(false);
    for (std::string line; std::getline(std::cin, line);) {
      std::cout << text::answer(tokenizer, parse_json(line, "line"), workspace).dump() << '\n';
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
