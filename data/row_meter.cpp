#include "data/row_meter.h"

#include <algorithm>

namespace sluice::data {
namespace {

constexpr std::string_view kBlanks = " \t\r\n";

}  // namespace

bool is_array_of_rows(std::string_view text) {
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  const size_t first = text.find_first_not_of(kBlanks);
  return first != std::string_view::npos && text[first] == '[';
}

ArraySplitter::Step ArraySplitter::step(char c) {
  if (state_ == State::kAfter) return Step::kAfter;
  if (state_ == State::kBefore) {
    if (c == '[') state_ = State::kInside;
    return Step::kBefore;
  }
  if (in_string_) {
    in_string_ = escaped_ || c != '"';
    escaped_ = !escaped_ && c == '\\';
    return Step::kElement;
  }
  if (c == '"') in_string_ = true;
  if (c == '{' || c == '[') ++depth_;
  if (depth_ > 0) {
    if (c == '}' || c == ']') --depth_;
    return Step::kElement;
  }
  if (c == ',') return Step::kComma;
  if (c != ']') return Step::kElement;
  state_ = State::kAfter;
  return Step::kEnd;
}

void RowMeter::add(std::string_view piece) {
  seen_ += piece.size();
  if (form_ == Form::kUnknown && piece.find_first_not_of(kBlanks) != std::string_view::npos)
    form_ = is_array_of_rows(piece) ? Form::kArray : Form::kLines;
  if (form_ == Form::kArray)
    add_array(piece);
  else
    add_lines(piece);
}

void RowMeter::add_lines(std::string_view piece) {
  for (size_t begin = 0; begin < piece.size();) {
    const size_t end = std::min(piece.find('\n', begin), piece.size());
    const std::string_view part = piece.substr(begin, end - begin);
    bytes_ += part.size();
    blank_ = blank_ && part.find_first_not_of(kBlanks) == std::string_view::npos;
    if (end < piece.size()) end_row(), ++line_;
    begin = end + 1;
  }
}

void RowMeter::add_array(std::string_view piece) {
  for (const char c : piece) {
    line_ += c == '\n';
    const ArraySplitter::Step step = splitter_.step(c);
    if (step == ArraySplitter::Step::kElement) {
      ++bytes_;
      blank_ = blank_ && kBlanks.find(c) != std::string_view::npos;
    } else if (step == ArraySplitter::Step::kComma || step == ArraySplitter::Step::kEnd) {
      end_row();
    }
  }
}

void RowMeter::end_row() {
  longest_ = std::max(longest_, bytes_);
  if (!blank_) ++rows_;
  bytes_ = 0;
  blank_ = true;
}

}  // namespace sluice::data
