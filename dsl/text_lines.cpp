#include "dsl/text_lines.h"

#include <algorithm>

#include "base/text/strings.h"
#include "base/text/utf8.h"

namespace sluice::dsl {
namespace {

int code_points(std::string_view text) { return static_cast<int>(count_code_points(text)); }

}  // namespace

TextLines::TextLines(std::string_view text, std::shared_ptr<const SourceText> source) : text_(text), source_(std::move(source)) {
  starts_.push_back(0);
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\n') starts_.push_back(i + 1);
  }
}

SourceSpan TextLines::span(int line, int column, int end_line, int end_column) const {
  if (end_line == line) return {source_, line, column, std::max(1, end_column - column)};
  const size_t begin = byte_at(line, column);
  const size_t line_end = byte_at(line, static_cast<int>(text_.size()) + 1);
  const std::string_view rest = text_.substr(begin, line_end - begin);
  return {source_, line, column, std::max(1, code_points(rest.substr(0, rest.find_last_not_of(" \t") + 1)))};
}

SourceSpan TextLines::span_of_bytes(size_t begin, size_t end) const {
  const auto after = std::upper_bound(starts_.begin(), starts_.end(), begin);
  const size_t start = *(after - 1);
  const int column = 1 + code_points(text_.substr(start, begin - start));
  return {source_, static_cast<int>(after - starts_.begin()), column, std::max(1, code_points(text_.substr(begin, end - begin)))};
}

std::string_view TextLines::line(int number) const {
  if (number < 1 || number > static_cast<int>(starts_.size())) return {};
  const size_t begin = starts_[number - 1];
  std::string_view text = text_.substr(begin, text_.find('\n', begin) - begin);
  if (!text.empty() && text.back() == '\r') text.remove_suffix(1);
  return text;
}

size_t TextLines::byte_at(int number, int column) const {
  if (number < 1 || number > static_cast<int>(starts_.size())) return text_.size();
  const std::string_view text = line(number);
  size_t byte = 0;
  for (int passed = 1; passed < column && byte < text.size(); ++passed) {
    do ++byte;
    while (byte < text.size() && is_continuation(text[byte]));
  }
  return starts_[number - 1] + byte;
}

size_t first_malformed_byte(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    size_t length = 1;
    while (length <= 4 && !is_utf8(text.substr(i, length))) ++length;
    if (length > 4) return i;
    i += length;
  }
  return std::string_view::npos;
}

}  // namespace sluice::dsl
