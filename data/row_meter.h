#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace sluice::data {

inline constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

/// True if a data file is one JSON array of rows instead of lines: its first character, after blanks, is '['.
bool is_array_of_rows(std::string_view text);

/// Finds where the elements of a JSON array end, one character after the other and without memory. What an element is, is not
/// looked at: a broken one may reach too far, but never past the end of the text. Not thread-safe.
class ArraySplitter {
 public:
  enum class Step {
    kBefore,   // blanks, and the '[' of the array
    kElement,  // part of an element, or blanks around it
    kComma,    // an element has ended, another follows
    kEnd,      // the last element has ended, and the array
    kAfter,    // after the array
  };

  Step step(char c);

 private:
  enum class State { kBefore, kInside, kAfter };
  State state_ = State::kBefore;
  size_t depth_ = 0;  // of objects and arrays that are open in the element
  bool in_string_ = false;
  bool escaped_ = false;
};

/// Counts and measures the rows of a text that comes in pieces: its lines that are not blank, or the elements of its array.
/// Not thread-safe.
class RowMeter {
 public:
  void add(std::string_view piece);

  size_t rows() const { return rows_; }                                     // that have ended
  size_t longest() const { return longest_ > bytes_ ? longest_ : bytes_; }  // bytes, of those and of the current one
  size_t bytes() const { return bytes_; }                                   // of the current one
  int64_t line() const { return line_; }                                    // of the text, from 1
  bool is_array() const { return form_ == Form::kArray; }
  size_t seen() const { return seen_; }

 private:
  enum class Form { kUnknown, kLines, kArray };

  void add_lines(std::string_view piece);
  void add_array(std::string_view piece);
  void end_row();

  Form form_ = Form::kUnknown;
  ArraySplitter splitter_;
  size_t rows_ = 0;
  size_t longest_ = 0;
  size_t bytes_ = 0;
  bool blank_ = true;  // the current line, so far
  int64_t line_ = 1;
  size_t seen_ = 0;
};

}  // namespace sluice::data
