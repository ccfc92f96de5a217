#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace sluice::columnar {

/// Writes rows as JSON, one after the other. Not thread-safe.
class RowText {
 public:
  RowText();

  size_t size() const { return text_.size(); }

  /// Hands over what was written, and begins anew in the memory of `text`.
  void move_to(std::string& text);

  void begin_row();
  size_t end_row();  // its bytes; a line break follows them

  /// As it stands, for what is JSON already.
  void append(std::string_view json) { text_.append(json); }
  void append(char c) { text_.push_back(c); }

  /// With quotes and escapes. Bytes that are no UTF-8 stay as they are, and the row is no valid text.
  void append_string(std::string_view value);

  /// A number as Python's json module writes it; null for what JSON has no number for.
  void append_number(double value);

  /// False once a string of the current row was no UTF-8.
  bool is_valid() const { return valid_; }

  /// True once the current row is longer than any may be: writing more of it is in vain, and strings are left out.
  bool is_too_long() const;

 private:
  std::string text_;
  size_t row_begin_ = 0;
  bool valid_ = true;
};

}  // namespace sluice::columnar
