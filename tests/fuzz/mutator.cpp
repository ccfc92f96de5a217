#include "tests/fuzz/mutator.h"

#include <algorithm>
#include <array>

namespace sluice::fuzz {
namespace {

// Damage that any text format should survive, whatever its own words are.
constexpr std::array kCommonWords = {"-1",
                                     "0",
                                     "1e999",
                                     "-0.0",
                                     "18446744073709551616",
                                     "9223372036854775807",
                                     "-9223372036854775808",
                                     "1e-400",
                                     "null",
                                     "true",
                                     "{}",
                                     "[]",
                                     "\"\"",
                                     "\\u0000",
                                     "\\ud800",
                                     "\xff",
                                     "\xed\xa0\x80",
                                     "\xf4\x90\x80\x80",
                                     "\xef\xbb\xbf",
                                     "\r\n",
                                     "\"",
                                     "{",
                                     "}",
                                     "[",
                                     "]",
                                     ",",
                                     ":"};

size_t place_in(const std::string& text, RandomStream& random) { return random.below(text.size() + 1); }

// A part of `text`: short most of the time.
std::pair<size_t, size_t> part_of(const std::string& text, RandomStream& random) {
  const size_t begin = place_in(text, random);
  const size_t longest = random.below(4) == 0 ? text.size() - begin : std::min<size_t>(16, text.size() - begin);
  return {begin, random.below(longest + 1)};
}

std::string repeated(const std::string& part, uint64_t times) {
  std::string all;
  while (times-- > 0 && all.size() < (size_t{1} << 20)) all += part;
  return all;
}

void replace_number(std::string& text, const char* number) {
  const size_t begin = text.find_first_of("0123456789");
  if (begin == std::string::npos) return;
  const size_t end = std::min(text.size(), text.find_first_not_of("0123456789.", begin));
  text.replace(begin, end - begin, number);
}

}  // namespace

Mutator::Mutator(std::vector<std::string> corpus, std::vector<std::string> words, uint64_t seed)
    : corpus_(std::move(corpus)), words_(std::move(words)), seed_(seed) {
  words_.insert(words_.end(), kCommonWords.begin(), kCommonWords.end());
}

std::string Mutator::input(uint64_t number) const {
  RandomStream random(seed_, number);
  std::string text = corpus_[random.below(corpus_.size())];
  const uint64_t times = 1 + random.below(random.below(3) == 0 ? 12 : 2);
  for (uint64_t i = 0; i < times; ++i) mutate(text, random);
  return text;
}

void Mutator::mutate(std::string& text, RandomStream& random) const {
  const auto [begin, length] = part_of(text, random);
  const std::string& word = words_[random.below(words_.size())];
  switch (random.below(10)) {
    case 0:  // a bit
      if (begin < text.size()) text[begin] = static_cast<char>(text[begin] ^ (1 << random.below(8)));
      return;
    case 1:  // a byte
      if (begin < text.size()) text[begin] = static_cast<char>(random.below(256));
      return;
    case 2:  // the end is missing
      text.resize(begin);
      return;
    case 3:  // a part is missing
      text.erase(begin, length);
      return;
    case 4: {  // a part is there many times
      text.insert(begin, repeated(text.substr(begin, length), random.below(20)));
      return;
    }
    case 5:  // a word too many
      text.insert(begin, word);
      return;
    case 6:  // a word instead
      text.replace(begin, length, word);
      return;
    case 7:  // deep nesting
      text.insert(begin, repeated(word, random.below(8) == 0 ? 100'000 / word.size() : random.below(600)));
      return;
    case 8: {  // another number somewhere after
      std::string rest = text.substr(begin);
      replace_number(rest, word.c_str());
      text.replace(begin, std::string::npos, rest);
      return;
    }
    default: {  // the first half of one, the second of another
      const std::string& other = corpus_[random.below(corpus_.size())];
      text = text.substr(0, begin) + other.substr(place_in(other, random));
      return;
    }
  }
}

}  // namespace sluice::fuzz
