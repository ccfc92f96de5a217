#include "base/problem.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <tuple>

#include "base/strings.h"

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

/// One code point of a line as a terminal shows it.
struct Glyph {
  std::string text;
  int width = 1;  // cells
};

// East Asian wide and emoji blocks; combining marks are rare enough in such files to be left alone.
bool is_wide(uint32_t c) {
  return (c >= 0x1100 && c <= 0x115F) || (c >= 0x2E80 && c <= 0xA4CF) || (c >= 0xAC00 && c <= 0xD7A3) ||
         (c >= 0xF900 && c <= 0xFAFF) || (c >= 0xFE30 && c <= 0xFE6F) || (c >= 0xFF00 && c <= 0xFF60) ||
         (c >= 0xFFE0 && c <= 0xFFE6) || (c >= 0x1F300 && c <= 0x1FAFF) || (c >= 0x20000 && c <= 0x3FFFD);
}

uint32_t decoded(std::string_view code_point) {
  const auto first = static_cast<unsigned char>(code_point.front());
  uint32_t value = code_point.size() == 1 ? first : first & (0x7Fu >> code_point.size());
  for (const char byte : code_point.substr(1)) value = value << 6 | (static_cast<unsigned char>(byte) & 0x3Fu);
  return value;
}

// A malformed byte or a control character becomes one replacement mark: a file must not be able to steer the terminal.
std::vector<Glyph> glyphs_of(std::string_view line) {
  std::vector<Glyph> glyphs;
  for (size_t i = 0; i < line.size();) {
    size_t length = 1;
    while (length <= 4 && !is_utf8(line.substr(i, length))) ++length;
    const uint32_t c = length <= 4 ? decoded(line.substr(i, length)) : 0;
    const bool shown = c == '\t' || (c >= 0x20 && c != 0x7F && !(c >= 0x80 && c < 0xA0));
    glyphs.push_back(shown ? Glyph{std::string(line.substr(i, length)), is_wide(c) ? 2 : 1} : Glyph{"\xEF\xBF\xBD", 1});
    i += length <= 4 ? length : 1;
  }
  return glyphs;
}

std::string shown(std::string_view text) {
  std::string out;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    if (begin > 0) out += '\n';
    for (const Glyph& glyph : glyphs_of(text.substr(begin, end - begin))) out += glyph.text;
    begin = end + 1;
  }
  return out;
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
  const std::vector<Glyph> glyphs = glyphs_of(line_of(*where.source, where.line));
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
  if (caret >= end) carets += '^';  // behind the last character
  if (end < glyphs.size()) line += "...";
  if (!problem.caret.empty()) carets += " " + shown(problem.caret);

  std::string number = std::to_string(where.line);
  if (number.size() < 5) number.insert(0, 5 - number.size(), ' ');
  return number + " | " + line + "\n" + std::string(number.size(), ' ') + " | " + carets + "\n";
}

}  // namespace

bool has_errors(const Problems& problems) {
  return std::any_of(problems.begin(), problems.end(), [](const Problem& p) { return p.severity == Severity::kError; });
}

std::string render(const Problem& problem) {
  const char* severity = problem.severity == Severity::kError ? "error: " : "warning: ";
  std::string text = shown(place(problem.where)) + severity + shown(problem.message) + "\n" + excerpt(problem);
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
