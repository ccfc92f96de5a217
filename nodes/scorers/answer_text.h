#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "text/unicode/oniguruma.h"

namespace sluice::nodes {

/// What counts as the same answer.
enum class AnswerForm {
  kNone,    // the same characters, blanks around them aside
  kText,    // letter case (of ASCII), runs of blanks and punctuation at the ends do not matter
  kNumber,  // the same number, see canonical_number
};

constexpr auto enum_names(AnswerForm) {
  return std::array{std::pair{AnswerForm::kNone, "none"}, std::pair{AnswerForm::kText, "text"},
                    std::pair{AnswerForm::kNumber, "number"}};
}

/// Finds the answer inside of a text: the last match of a regular expression, or all of the text when the pattern is empty.
/// The first capture group of the match is the answer, or the whole match where the pattern has none.
/// Immutable: const use from many threads.
class AnswerFinder {
 public:
  /// Throws UserError when the pattern is not valid; `where` is how the message calls it.
  AnswerFinder(const std::string& pattern, const std::string& where);

  /// Without the blanks around it; nothing when there is no match, or when `text` is not UTF-8 and there is a pattern.
  std::optional<std::string_view> find(std::string_view text) const;

 private:
  std::optional<text::Regex> regex_;
};

/// The text that all answers which count as the same have in common. Nothing when `answer` is no number and `form` is kNumber.
std::optional<std::string> canonical_answer(std::string_view answer, AnswerForm form);

/// One text for each number: decimals ("72.50"), thousands separators ("1,234"), fractions ("3/4"), exponents ("5e3"), a currency
/// sign before it, a percent sign or unit after it ("72 apples."; the unit has no digits and changes nothing: 50% is 50). Exact:
/// nothing goes through floating point. Nothing when the text is anything else.
std::optional<std::string> canonical_number(std::string_view text);

}  // namespace sluice::nodes
