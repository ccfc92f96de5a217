#include "base/problem.h"

#include <algorithm>
#include <set>
#include <tuple>

namespace sluice {
namespace {

std::string line_of(const SourceText& source, int line) {
  size_t begin = 0;
  for (int i = 1; i < line; ++i) {
    const size_t end = source.text.find('\n', begin);
    if (end == std::string::npos) return {};
    begin = end + 1;
  }
  std::string text = source.text.substr(begin, source.text.find('\n', begin) - begin);
  if (!text.empty() && text.back() == '\r') text.pop_back();
  constexpr size_t kWidest = 200;  // a data file may hold lines of megabytes
  if (text.size() > kWidest) text = text.substr(0, kWidest) + "...";
  return text;
}

// Carets stand under the text also where the line is indented by tabs.
std::string indent_like(const std::string& line, int column) {
  std::string indent;
  for (int i = 0; i + 1 < column; ++i) indent += i < static_cast<int>(line.size()) && line[i] == '\t' ? '\t' : ' ';
  return indent;
}

std::string place(const SourceSpan& where) {
  if (!where.known()) return {};
  std::string text = where.source->name;
  if (where.line > 0) text += ":" + std::to_string(where.line) + ":" + std::to_string(std::max(where.column, 1));
  return text + ": ";
}

std::string excerpt(const Problem& problem) {
  const SourceSpan& where = problem.where;
  if (!where.known() || where.line == 0) return problem.caret.empty() ? "" : "      = " + problem.caret + "\n";
  const std::string line = line_of(*where.source, where.line);
  std::string number = std::to_string(where.line);
  if (number.size() < 5) number.insert(0, 5 - number.size(), ' ');
  const std::string margin(number.size(), ' ');
  const int last = static_cast<int>(line.size()) + 1;
  const int column = std::clamp(where.column, 1, last);
  const int length = std::clamp(where.length, 1, std::max(1, last - column));
  std::string text = number + " | " + line + "\n" + margin + " | " + indent_like(line, column) + std::string(length, '^');
  if (!problem.caret.empty()) text += " " + problem.caret;
  return text + "\n";
}

}  // namespace

bool has_errors(const Problems& problems) {
  return std::any_of(problems.begin(), problems.end(), [](const Problem& p) { return p.severity == Severity::kError; });
}

std::string render(const Problem& problem) {
  const char* severity = problem.severity == Severity::kError ? "error: " : "warning: ";
  std::string text = place(problem.where) + severity + problem.message + "\n" + excerpt(problem);
  for (const std::string& note : problem.notes) text += "      = " + note + "\n";
  if (!problem.help.empty()) text += "      = help: " + problem.help + "\n";
  return text;
}

std::string render(const Problems& problems) {
  Problems sorted = problems;
  std::stable_sort(sorted.begin(), sorted.end(), [](const Problem& a, const Problem& b) {
    const std::string& file_a = a.where.known() ? a.where.source->name : a.message;
    const std::string& file_b = b.where.known() ? b.where.source->name : b.message;
    return std::tie(file_a, a.where.line, a.where.column) < std::tie(file_b, b.where.line, b.where.column);
  });
  std::set<std::string> seen;
  std::string text;
  for (const Problem& problem : sorted) {
    const std::string one = render(problem);
    if (!seen.insert(one).second) continue;
    text += (text.empty() ? "" : "\n") + one;
  }
  return text;
}

}  // namespace sluice
