#include "base/problem.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "base/text/printable.h"

namespace sluice {
namespace {

std::string_view line_of(const SourceText& source, int line) {
  size_t begin = 0;
  for (int i = source.first_line; i < line; ++i) {
    const size_t end = source.text.find('\n', begin);
    if (end == std::string::npos) return {};
    begin = end + 1;
  }
  std::string_view text = std::string_view(source.text).substr(begin, source.text.find('\n', begin) - begin);
  if (!text.empty() && text.back() == '\r') text.remove_suffix(1);
  return text;
}

// Tabs stay, so that carets stand below what they mean.
std::vector<Glyph> glyphs_of_line(std::string_view line) {
  std::vector<Glyph> glyphs = glyphs_of(line);
  for (Glyph& glyph : glyphs) {
    if (glyph.text == "\\t") glyph = {.text = "\t", .width = 1, .code = '\t'};
  }
  return glyphs;
}

// What a problem says may quote a file, and name a folder that has a line end in its name. Further lines of a problem's own are
// indented: no other line end is one.
std::string shown(std::string_view text) {
  std::string lines;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool is_own = text[i] != '\n' || i + 1 == text.size() || text[i + 1] == ' ' || text[i + 1] == '\n';
    lines += is_own ? std::string(1, text[i]) : "\\n";
  }
  return printable(lines, Lines::kKept);
}

std::string place(const SourceSpan& where) {
  if (!where.known()) return {};
  std::string text = where.source->name;
  if (where.line > 0) text += ":" + std::to_string(where.line) + ":" + std::to_string(std::max(where.column, 1));
  return text + ": ";
}

// The line with carets under [column, column + length). Of a line that is too long (a data file may hold lines of megabytes) only
// the neighbourhood of the carets is shown.
std::string excerpt(const Problem& problem) {
  const SourceSpan& where = problem.where;
  if (!where.known() || where.line == 0) return problem.caret.empty() ? "" : "      = " + shown(problem.caret) + "\n";
  const std::vector<Glyph> glyphs = glyphs_of_line(line_of(*where.source, where.line));
  constexpr size_t kWidest = 200, kBefore = 80;
  const int first_column = where.line == where.source->first_line ? where.source->first_column : 1;
  const size_t caret = std::min(static_cast<size_t>(std::max(where.column - first_column, 0)), glyphs.size());
  const size_t begin = glyphs.size() > kWidest && caret > kBefore ? caret - kBefore : 0;
  const size_t end = std::min(glyphs.size(), begin + kWidest);
  const size_t caret_end = std::min(caret + static_cast<size_t>(std::max(where.length, 1)), std::max(end, caret + 1));

  const bool cut = begin > 0 || first_column > 1;
  std::string line = cut ? "..." : "", carets = cut ? "   " : "";
  for (size_t i = begin; i < end; ++i) {
    line += glyphs[i].text;
    if (i < caret) carets += glyphs[i].text == "\t" ? "\t" : std::string(glyphs[i].width, ' ');
    if (i >= caret && i < caret_end) carets += std::string(glyphs[i].width, '^');
  }
  if (caret >= end) carets += '^';  // after the last character
  if (end < glyphs.size()) line += "...";
  if (!problem.caret.empty()) carets += " " + shown(problem.caret);

  std::string number = std::to_string(where.line);
  if (number.size() < 5) number.insert(0, 5 - number.size(), ' ');
  return number + " | " + line + "\n" + std::string(number.size(), ' ') + " | " + carets + "\n";
}

}  // namespace

const char* severity_name(Severity severity) { return severity == Severity::kError ? "error" : "warning"; }

bool has_errors(const Problems& problems) {
  return std::any_of(problems.begin(), problems.end(), [](const Problem& p) { return p.severity == Severity::kError; });
}

std::string render(const Problem& problem) {
  const char* severity = problem.severity == Severity::kError ? "error: " : "warning: ";
  std::string text = printable(place(problem.where)) + severity + shown(problem.message) + "\n" + excerpt(problem);
  for (const std::string& note : problem.notes) text += "      = " + shown(note) + "\n";
  if (!problem.help.empty()) text += "      = help: " + shown(problem.help) + "\n";
  return text;
}

Problems in_order(const Problems& problems) {
  Problems sorted = problems;
  std::stable_sort(sorted.begin(), sorted.end(), [](const Problem& a, const Problem& b) {
    const std::string& file_a = a.where.known() ? a.where.source->name : a.message;
    const std::string& file_b = b.where.known() ? b.where.source->name : b.message;
    return std::tie(file_a, a.where.line, a.where.column) < std::tie(file_b, b.where.line, b.where.column);
  });
  std::set<std::string> seen;
  std::erase_if(sorted, [&](const Problem& problem) { return !seen.insert(render(problem)).second; });
  return sorted;
}

std::string render(const Problems& problems) {
  std::string text;
  for (const Problem& problem : in_order(problems)) text += (text.empty() ? "" : "\n") + render(problem);
  return text;
}

}  // namespace sluice
