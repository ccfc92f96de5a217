#include "text/tool_calls/call_json.h"

#include <algorithm>

namespace sluice::text {

std::string reason_of(const UserError& error) {
  const Problem& problem = error.problems().front();
  if (problem.caret.empty()) return problem.message;
  return problem.caret + " at character " + std::to_string(problem.where.column) +
         (problem.where.line > 1 ? " of line " + std::to_string(problem.where.line) : "");
}

size_t find_outside_strings(std::string_view text, std::string_view mark) {
  if (mark.empty()) return std::string_view::npos;
  bool in_string = false;
  size_t within = std::string_view::npos;  // the first mark in the string at hand
  for (size_t i = 0; i < text.size(); ++i) {
    if (text.substr(i).starts_with(mark)) {
      if (!in_string) return i;
      within = std::min(within, i);
    }
    if (in_string && text[i] == '\n') {
      if (within != std::string_view::npos) return within;
      in_string = false;
    } else if (in_string && text[i] == '\\') {
      ++i;
    } else if (text[i] == '"') {
      in_string = !in_string;
      within = std::string_view::npos;
    }
  }
  return within;
}

size_t end_of_json(std::string_view text, size_t at) {
  if (at >= text.size() || (text[at] != '{' && text[at] != '[')) return std::string_view::npos;
  bool in_string = false;
  size_t depth = 0;
  for (size_t i = at; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\')
        ++i;
      else if (c == '"')
        in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      ++depth;
    } else if ((c == '}' || c == ']') && --depth == 0) {
      return i + 1;
    }
  }
  return std::string_view::npos;
}

}  // namespace sluice::text
