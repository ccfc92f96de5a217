#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/unicode/oniguruma.h"

namespace sluice::nodes {

/// Finds the letter that sentences settle on, as a capital. Of the following it is the first that is there; each of them is
/// nothing where it leaves several letters ("A or B"):
///
/// 1. the last of `answer ... is B` and `answer: B` (no further than 60 characters on the same line; a small letter only at the
///    line's end or in parentheses), and `B is correct` (right, best, true, the correct one);
/// 2. of several lines `A: wrong`, `B: right` the letter that is right;
/// 3. the last capital letter that stands alone and is not ruled out (`not B`, `isn't B`, `B is wrong`, `B fails`). An A or I in
///    front of a word in small letters is none: it is an article or pronoun.
///
/// Immutable: const use from many threads.
class ChoiceFinder {
 public:
  explicit ChoiceFinder(int64_t choices);

  /// Of a text that is UTF-8. Throws text::RegexGaveUp.
  std::optional<char> find(std::string_view text) const;

 private:
  std::optional<char> settled(std::string_view text, size_t last) const;

  const text::Regex answer_is_;
  const text::Regex is_correct_;
  const text::Regex right_line_, wrong_line_;
  const text::Regex standing_alone_;
  const text::Regex denied_before_, denied_behind_;
  const text::Regex joined_;  // to the next letter, by "or" and the like
};

/// What may stand in front of a letter, and what after it at the end. One repetition, so that no run of blanks can be cut in
/// two.
inline constexpr const char* kBeforeLetter = R"((?:[\s*_"'`$({\[]|\\\(|\\(?:text|textbf|mathrm|mathbf)\b|(?i:option|choice)\b)*)";
inline constexpr const char* kBehindLetter = R"([\s*_"'`$)}\].:]*)";

/// A regular expression for one of so many letters, capital or not.
std::string letter_of_any_case(int64_t choices);

text::Regex choice_regex(const std::string& pattern);

char capital_of(char letter);

}  // namespace sluice::nodes
