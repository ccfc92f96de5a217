#pragma once

#include <cstddef>
#include <memory>
#include <string_view>
#include <vector>

#include "base/problem.h"

namespace sluice::dsl {

/// Makes spans of a text by line and column, both from 1; columns count code points. Keeps the source alive; the view must
/// outlive it.
class TextLines {
 public:
  TextLines(std::string_view text, std::shared_ptr<const SourceText> source);

  /// From one place up to, not including, another; clipped to the first line, without blanks at its end.
  SourceSpan span(int line, int column, int end_line, int end_column) const;

  /// The span of the bytes [begin, end) of the text.
  SourceSpan span_of_bytes(size_t begin, size_t end) const;

  /// The line without its line break; empty past the end.
  std::string_view line(int number) const;

  /// Where a place is in the text. Past the end of a line: the end of that line.
  size_t byte_at(int line, int column) const;

 private:
  std::string_view text_;
  std::shared_ptr<const SourceText> source_;
  std::vector<size_t> starts_;  // [lines]
};

/// The first byte that is not part of well-formed UTF-8, or npos.
size_t first_malformed_byte(std::string_view text);

}  // namespace sluice::dsl
