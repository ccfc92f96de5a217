#include "nodes/scorers/math/choice_finder.h"

#include <algorithm>
#include <set>

namespace sluice::nodes {
namespace {

// Of ASCII: letters of other scripts stand beside an answer without a blank.
constexpr const char* kNoWordBefore = R"((?<![A-Za-z0-9_'\\]))";
constexpr const char* kNoWordBehind = R"((?![A-Za-z0-9_']))";
constexpr const char* kClosing = R"re([*_)"'`$\]}]*)re";

std::string letters(char first, int64_t choices) {
  return std::string("[") + first + "-" + static_cast<char>(first + choices - 1) + "]";
}

std::string capital(int64_t choices) { return letters('A', choices); }

// A and I in front of a small letter are words of English, unless that is a conjunction.
std::string standing_letter(int64_t choices) { return R"((?![AI] (?!or\b|and\b)[a-z]))" + capital(choices) + kNoWordBehind; }

// The letter behind "answer is": a small one only where it cannot be a word of a sentence.
std::string answer_pattern(int64_t choices) {
  const std::string small = letters('a', choices);
  return R"((?i:\banswer(?!\s+(?:choices|options)))[^\n]{0,60}?(?:(?i:\bis\b)|:|=))" + std::string(kBeforeLetter) + "(" +
         capital(choices) + kNoWordBehind + R"(|(?<=\())" + small + R"((?=\))|)" + small + R"((?=[^\w\n]*(?:\n|\z))))";
}

std::string correct_pattern(int64_t choices) {
  return kNoWordBefore + ("(" + capital(choices)) + R"re()[*_)"'`\]}]*\s+(?i:is\s+(?:the\s+)?(?:correct|right|best|true)))re";
}

// A line with a letter and what is said of it, and nothing else.
std::string line_pattern(int64_t choices, const std::string& words) {
  return R"(^[^\w\n]*()" + capital(choices) + R"()[^\w\n]+(?i:)" + words + R"()[^\w\n]*$)";
}

std::string standing_pattern(int64_t choices) { return kNoWordBefore + ("(" + standing_letter(choices)) + ")"; }

std::string denied_before_pattern(int64_t choices) {
  return R"((?i:\b(?:not|cannot|never|neither|nor|except|unlike|rather\s+than|instead\s+of)|n['’]t)\b(?i:\s+be\b|\s+the\b)?)" +
         std::string(kBeforeLetter) + "(" + standing_letter(choices) + ")";
}

std::string denied_behind_pattern(int64_t choices) {
  return kNoWordBefore + ("(" + capital(choices)) + ")" + kClosing +
         R"(\s+(?i:(?:is|was|are)\s+(?:(?:definitely|clearly|obviously|certainly|also|just|the)\s+)?(?:not|wrong|incorrect|false))" +
         R"(|(?:isn|wasn|aren|doesn|can|won)['’]t|cannot|fails?)\b)";
}

std::string joined_pattern(int64_t choices) {
  const std::string next = kBeforeLetter + ("(?:" + standing_letter(choices)) + ")";
  const std::string by_word = R"re([*_)"'`$\]}\s,]*(?:\b(?i:or|and)\b|[/&]))re" + next;
  const std::string by_comma = std::string(kClosing) + "," + next + kClosing + R"((?:[,.;]|\s+(?i:or|and)\b|\s*\z))";
  return kNoWordBefore + ("(" + standing_letter(choices)) + ")(?=" + by_word + "|" + by_comma + ")";
}

using Places = std::set<size_t>;

void add_places(const text::Regex& pattern, std::string_view text, Places& places) {
  for (const auto& match : pattern.find_all_captures(text)) places.insert(match.begin);
}

Places places_of(std::initializer_list<const text::Regex*> patterns, std::string_view text) {
  Places places;
  for (const text::Regex* pattern : patterns) add_places(*pattern, text, places);
  return places;
}

}  // namespace

char capital_of(char letter) { return letter >= 'a' ? static_cast<char>(letter - 'a' + 'A') : letter; }

std::string letter_of_any_case(int64_t choices) { return "(?:" + letters('A', choices) + "|" + letters('a', choices) + ")"; }

text::Regex choice_regex(const std::string& pattern) { return {pattern, "type \"multiple_choice\""}; }

ChoiceFinder::ChoiceFinder(int64_t choices)
    : answer_is_(choice_regex(answer_pattern(choices))),
      is_correct_(choice_regex(correct_pattern(choices))),
      right_line_(choice_regex(line_pattern(choices, "right|correct|true"))),
      wrong_line_(choice_regex(line_pattern(choices, "wrong|incorrect|false"))),
      standing_alone_(choice_regex(standing_pattern(choices))),
      denied_before_(choice_regex(denied_before_pattern(choices))),
      denied_behind_(choice_regex(denied_behind_pattern(choices))),
      joined_(choice_regex(joined_pattern(choices))) {}

std::optional<char> ChoiceFinder::find(std::string_view text) const {
  const Places named = places_of({&answer_is_, &is_correct_}, text);
  if (!named.empty()) return settled(text, *named.rbegin());

  const Places right = places_of({&right_line_}, text), wrong = places_of({&wrong_line_}, text);
  if (right.size() + wrong.size() > 1) return right.size() == 1 ? std::optional(text[*right.begin()]) : std::nullopt;

  const Places denied = places_of({&denied_before_, &denied_behind_}, text);
  Places standing = places_of({&standing_alone_}, text);
  for (const size_t place : denied) standing.erase(place);
  return standing.empty() ? std::nullopt : settled(text, *standing.rbegin());
}

// The letter at `last`, unless it is one of several that "or" and the like put beside each other.
std::optional<char> ChoiceFinder::settled(std::string_view text, size_t last) const {
  const Places joined = places_of({&joined_}, text), denied = places_of({&denied_before_, &denied_behind_}, text);
  const Places standing = places_of({&standing_alone_}, text);
  if (!standing.contains(last)) return capital_of(text[last]);
  auto first = standing.find(last), behind = std::next(first);
  while (first != standing.begin() && joined.contains(*std::prev(first))) --first;
  while (behind != standing.end() && joined.contains(*std::prev(behind))) ++behind;
  const bool is_alone =
      std::all_of(first, behind, [&](size_t place) { return text[place] == text[last] || denied.contains(place); });
  return is_alone ? std::optional(text[last]) : std::nullopt;
}

}  // namespace sluice::nodes
