#include "nodes/scorers/answer_text.h"

#include <algorithm>

#include "base/error.h"
#include "base/text/strings.h"

namespace sluice::nodes {
namespace {

bool is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

std::string plain_text(std::string_view answer) {
  constexpr std::string_view kEnds = ".,;:!?\"'`* \t\r\n\v\f";
  const size_t begin = answer.find_first_not_of(kEnds);
  if (begin == std::string_view::npos) return {};
  answer = answer.substr(begin, answer.find_last_not_of(kEnds) - begin + 1);
  std::string text;
  for (const char c : answer) {
    if (is_blank(c)) {
      if (text.back() != ' ') text += ' ';
    } else {
      text += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    }
  }
  return text;
}

}  // namespace

AnswerFinder::AnswerFinder(const std::string& pattern, const std::string& where) {
  if (pattern.empty()) return;
  if (!is_utf8(pattern)) throw UserError(where + ": the regular expression is not UTF-8");
  regex_.emplace(pattern, where);
}

std::optional<std::string_view> AnswerFinder::find(std::string_view text) const {
  if (!regex_) return trim(text);
  if (!is_utf8(text)) return std::nullopt;
  const auto matches = regex_->find_all_captures(text);
  if (matches.empty()) return std::nullopt;
  return trim(text.substr(matches.back().begin, matches.back().end - matches.back().begin));
}

std::optional<std::string> canonical_answer(std::string_view answer, AnswerForm form) {
  switch (form) {
    case AnswerForm::kNone:
      return std::string(trim(answer));
    case AnswerForm::kText:
      return plain_text(answer);
    case AnswerForm::kNumber:
      return canonical_number(answer);
  }
  throw InternalError("unknown form of an answer");
}

}  // namespace sluice::nodes
