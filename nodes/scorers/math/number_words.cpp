#include "nodes/scorers/math/number_words.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "base/text/strings.h"
#include "nodes/scorers/number_parts.h"

namespace sluice::nodes {
namespace {

constexpr std::array<std::pair<std::string_view, int64_t>, 5> kScales{
    {{"hundred", 2}, {"thousand", 3}, {"million", 6}, {"billion", 9}, {"trillion", 12}}};

std::string_view word_at(std::string_view text) {
  return text.substr(0, static_cast<size_t>(std::ranges::find_if_not(text, is_letter) - text.begin()));
}

int64_t take_scale_word(std::string_view& text) {
  const std::string_view rest = text.substr(std::min(text.find_first_not_of(" {}"), text.size()));
  const std::string_view word = word_at(rest);
  std::string name = small_letters(std::string(word));
  if (name.ends_with('s')) name.pop_back();
  const auto found = std::ranges::find(kScales, name, &std::pair<std::string_view, int64_t>::first);
  if (found == kScales.end()) return 0;
  text = rest.substr(word.size());
  return found->second;
}

}  // namespace

int64_t take_scale_words(std::string_view& text) {
  const int64_t first = take_scale_word(text);
  return first == 0 ? 0 : first + take_scale_word(text);
}

bool joins_something(std::string_view text) {
  for (; !text.empty(); text.remove_prefix(std::max<size_t>(1, word_at(text).size()))) {
    const std::string word = small_letters(std::string(word_at(text)));
    if (word == "or" || word == "and") return true;
  }
  return false;
}

}  // namespace sluice::nodes
