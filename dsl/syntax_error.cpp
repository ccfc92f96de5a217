#include "dsl/syntax_error.h"

#include <algorithm>
#include <cctype>

#include "base/text/strings.h"

namespace sluice::dsl {
namespace {

struct Description {
  std::string scope;   // what was being parsed: "value", "table header"
  std::string reason;  // what was wrong with it
};

Description taken_apart(std::string_view description) {
  constexpr std::string_view kPrefix = "Error while parsing ";
  if (description.substr(0, kPrefix.size()) != kPrefix) return {"", std::string(description)};
  description.remove_prefix(kPrefix.size());
  const size_t colon = std::min(description.find(": "), description.size());
  const size_t after = std::min(colon + 2, description.size());
  return {std::string(description.substr(0, colon)), std::string(description.substr(after))};
}

bool part_of_word(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return std::isalnum(byte) != 0 || byte >= 0x80 || std::string_view("_-./:+").find(c) != std::string_view::npos;
}

// The word around `place`, or the empty one there. The parser may stop anywhere inside of a bad value.
std::pair<size_t, size_t> word_around(std::string_view text, size_t place) {
  size_t begin = std::min(place, text.size()), end = begin;
  while (begin > 0 && part_of_word(text[begin - 1])) --begin;
  while (end < text.size() && part_of_word(text[end])) ++end;
  return {begin, end};
}

bool starts_like_text(std::string_view word) {
  if (word.empty()) return false;
  const auto first = static_cast<unsigned char>(word.front());
  return std::isalpha(first) != 0 || first >= 0x80 || word.front() == '/' || word.front() == '.';
}

Problem problem_at(SourceSpan where, std::string message, std::string caret) {
  return {.kind = "toml-syntax",
          .where = std::move(where),
          .message = std::move(message),
          .caret = std::move(caret),
          .notes = {},
          .help = {}};
}

// type = gae, on = none, path = ../x: the word starts like true, inf, .5 or nothing that TOML knows.
bool is_bad_word(const Description& error) {
  return error.scope == "boolean" || error.reason == "expected decimal digit, saw '.'" ||
         error.reason == "could not determine value type" || error.reason.find("expected 'inf'") == 0 ||
         error.reason.find("expected 'nan'") == 0;
}

Problem bad_word(std::string_view text, const TextLines& lines, size_t place) {
  const auto [begin, end] = word_around(text, place);
  const std::string_view word = text.substr(begin, end - begin);
  const std::string lower = small_letters(std::string(word));
  std::string caret = "not a TOML value";
  if (lower == "true" || lower == "false" || lower == "inf" || lower == "nan") {
    caret = "write " + lower;
  } else if (word.size() > 1 && word.front() == '.' && word.find_first_not_of("0123456789", 1) == std::string_view::npos) {
    caret = "write 0" + lower;
  } else if (starts_like_text(word) && word.find("\xE2\x80\x9C") == std::string_view::npos) {
    caret = "text needs quotes: " + sluice::quoted(word);
  } else if (starts_like_text(word)) {
    caret = "text needs straight quotes";
  }
  return problem_at(lines.span_of_bytes(begin, end), "not a value", caret);
}

Problem duplicate(std::string_view text, const TextLines& lines, const Description& error, int line, size_t place) {
  const size_t open = error.reason.find('\'');
  const size_t close = error.reason.find('\'', open + 1);
  if (open == std::string::npos || close == std::string::npos) {
    const auto [begin, end] = word_around(text, place);
    return problem_at(lines.span_of_bytes(begin, end), "a key is used both as a value and as a table", "already has a value");
  }
  const std::string name = error.reason.substr(open + 1, close - open - 1);
  const std::string_view written = trim(lines.line(line));
  const bool header = written.substr(0, 1) == "[";
  const bool starts_line = written.substr(0, name.size()) == name;
  const size_t line_begin = static_cast<size_t>(written.data() - text.data());
  const auto where = header ? lines.span_of_bytes(line_begin, line_begin + std::min(written.find(']'), written.size() - 1) + 1)
                     : starts_line ? lines.span_of_bytes(line_begin, line_begin + name.size())
                                   : lines.span_of_bytes(place, place + 1);
  Problem problem = problem_at(where, (header ? "[" + name + "]" : "key " + name) + " is written twice", "keep one of the two");
  problem.kind = "written-twice";
  return problem;
}

bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

}  // namespace

Problem syntax_problem(std::string_view text, const TextLines& lines, std::string_view description, int line, int column) {
  const Description error = taken_apart(description);
  const size_t place = lines.byte_at(line, column);
  const SourceSpan here = lines.span(line, column, line, column + 1);
  if (contains(error.reason, "cannot redefine existing")) return duplicate(text, lines, error, line, place);
  if (is_bad_word(error)) return bad_word(text, lines, place);
  if (contains(error.scope, "string") && contains(error.reason, "control characters")) {
    if (place >= text.size() || text[place] == '\n' || text[place] == '\r') {
      return problem_at(here, "a string does not end", "the closing quote is missing");
    }
    return problem_at(here, "a control character in a string", "write it as an escape such as \\u0001");
  }
  if (contains(error.scope, "string") && contains(error.reason, "end-of-file")) {
    return problem_at(here, "a string does not end", "the text ends here, the closing quote is missing");
  }
  if (contains(error.reason, "end-of-file")) {
    const bool no_value = error.scope == "key-value pair" || error.scope == "value";
    return problem_at(here, "unfinished " + error.scope, no_value ? "a value is missing" : "the text ends here");
  }
  if (contains(error.reason, "expected value, saw")) return problem_at(here, "a key without a value", "a value is missing");
  if (contains(error.reason, "expected bare key starting character")) {
    return problem_at(here, "an unfinished key", "a part of the key is missing");
  }
  if (contains(error.reason, "expected a comment or whitespace")) {
    const auto [begin, end] = word_around(text, place);
    return problem_at(lines.span_of_bytes(place, std::max(end, place + 1)), "text after the end of a " + error.scope,
                      "expected the end of the line");
  }
  if (contains(error.reason, "expected keys, tables"))
    return problem_at(here, "not a line of TOML", "expected a key or a [table]");
  if (contains(error.reason, "maximum nested value depth")) return problem_at(here, "values nest too deeply", "");
  if (contains(error.reason, "dangling comma")) return problem_at(here, "an inline table ends with a comma", "remove the comma");
  if (contains(error.reason, "representable in 64 bits")) {
    const auto [begin, end] = word_around(text, place == 0 ? 0 : place - 1);
    return problem_at(lines.span_of_bytes(begin, end), "an integer is too large", "integers have 64 bits");
  }
  return problem_at(here, "invalid TOML" + (error.scope.empty() ? "" : " in a " + error.scope), error.reason);
}

}  // namespace sluice::dsl
