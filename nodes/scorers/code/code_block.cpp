#include "nodes/scorers/code/code_block.h"

#include <algorithm>
#include <optional>

#include "base/text/strings.h"

namespace sluice::nodes {
namespace {

constexpr size_t kShortest = 3;
constexpr size_t kFurtherIn = 3;  // blanks before a closing fence, beyond those before the one that opened

// A fence, and where it stands in a text.
struct Fence {
  size_t at = 0;
  size_t length = 0;
  size_t indent = 0;   // blanks before it
  bool first = false;  // on its line
};

bool is_blank(char c) { return c == ' ' || c == '\t'; }

size_t end_of_line(std::string_view text, size_t at) { return std::min(text.find('\n', at), text.size()); }

size_t blanks_at(std::string_view line) { return std::min(line.find_first_not_of(" \t"), line.size()); }

Fence fence_at(std::string_view text, size_t at) {
  const size_t end = std::min(text.find_first_not_of(text[at], at), text.size());
  size_t begin = at;
  while (begin > 0 && is_blank(text[begin - 1])) --begin;
  const bool first = begin == 0 || text[begin - 1] == '\n';
  return {.at = at, .length = end - at, .indent = first ? at - begin : 0, .first = first};
}

// The next backtick of the same line.
std::optional<Fence> next_backticks(std::string_view text, size_t from) {
  const size_t next = text.find_first_of("`\n", from);
  if (next == std::string_view::npos || text[next] == '\n') return std::nullopt;
  return fence_at(text, next);
}

bool opens(std::string_view text, const Fence& fence) {
  if (fence.length < kShortest) return false;
  return text[fence.at] == '~' ? fence.first : !next_backticks(text, fence.at + fence.length);
}

// After what `fence` begins, where that is code within a line: `a`, ``a``; else after itself.
size_t end_of_span(std::string_view text, const Fence& fence) {
  const size_t begin = fence.at + fence.length;
  if (text[fence.at] == '~') return begin;
  for (size_t at = begin; const auto next = next_backticks(text, at);) {
    at = next->at + next->length;
    if (next->length == fence.length) return at;
  }
  return begin;
}

std::optional<Fence> next_opening(std::string_view text, size_t from) {
  for (size_t at = from; (at = text.find_first_of("`~", at)) != std::string_view::npos;) {
    const Fence fence = fence_at(text, at);
    if (opens(text, fence)) return fence;
    at = end_of_span(text, fence);
  }
  return std::nullopt;
}

// The fence that closes a block whose first line begins at `from`.
std::optional<Fence> closing(std::string_view text, const Fence& opening, size_t from) {
  for (size_t line = from; line < text.size(); line = end_of_line(text, line) + 1) {
    const size_t at = line + blanks_at(text.substr(line));
    if (at >= text.size() || text[at] != text[opening.at] || at - line > opening.indent + kFurtherIn) continue;
    const Fence fence = fence_at(text, at);
    if (fence.length >= opening.length) return fence;
  }
  return std::nullopt;
}

bool is_python(std::string_view mark) {
  const std::string name = small_letters(std::string(mark.substr(0, mark.find_first_of(" \t"))));
  return name == "python" || name == "py" || name == "python3";
}

std::string without_indent(std::string_view block, size_t indent) {
  if (indent == 0) return std::string(block);
  std::string text;
  while (!block.empty()) {
    const size_t end = std::min(end_of_line(block, 0) + 1, block.size());
    const std::string_view line = block.substr(0, end);
    text += line.substr(std::min(indent, blanks_at(line)));
    block.remove_prefix(end);
  }
  return text;
}

}  // namespace

std::string code_of(std::string_view response) {
  std::optional<std::string> of_python, of_any;
  for (size_t at = 0; const auto opening = next_opening(response, at);) {
    const size_t mark = opening->at + opening->length, mark_end = end_of_line(response, mark);
    const size_t begin = std::min(mark_end + 1, response.size());
    const auto end = closing(response, *opening, begin);
    const size_t block_end = end ? end->at - end->indent : response.size();
    of_any = without_indent(response.substr(begin, block_end - begin), opening->indent);
    if (is_python(trim(response.substr(mark, mark_end - mark)))) of_python = of_any;
    at = end ? end->at + end->length : response.size();
  }
  if (of_python) return *of_python;
  return of_any ? *of_any : std::string(response);
}

}  // namespace sluice::nodes
