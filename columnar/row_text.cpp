#include "columnar/row_text.h"

#include <arrow/util/utf8.h>

#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "data/row_file.h"

namespace sluice::columnar {
namespace {

constexpr uint64_t every_byte(uint8_t byte) { return uint64_t{0x0101010101010101} * byte; }

// The highest bit of each of 8 bytes that is zero, and maybe of others above the first such.
constexpr uint64_t zero_bytes(uint64_t bytes) { return (bytes - every_byte(1)) & ~bytes & every_byte(0x80); }

// Likewise of those that do not stand for themselves in a JSON string, or are not ASCII.
constexpr uint64_t special_bytes(uint64_t bytes) {
  const uint64_t control = (bytes - every_byte(0x20)) & ~bytes & every_byte(0x80);
  return control | zero_bytes(bytes ^ every_byte('"')) | zero_bytes(bytes ^ every_byte('\\')) | (bytes & every_byte(0x80));
}

bool needs_escape(char c) { return static_cast<unsigned char>(c) < 0x20 || c == '"' || c == '\\'; }

// Where the first byte is that stops a run of plain ones, from `begin`.
size_t end_of_run(std::string_view text, size_t begin, bool& ascii) {
  size_t at = begin;
  while (at < text.size()) {
    uint64_t bytes = 0;
    const bool whole = text.size() - at >= sizeof bytes;
    if (whole) std::memcpy(&bytes, text.data() + at, sizeof bytes);
    const uint64_t special = whole ? special_bytes(bytes) : 1;
    if (whole && special == 0) {
      at += sizeof bytes;
      continue;
    }
    const size_t last = whole ? at + sizeof bytes : text.size();
    if (whole) at += static_cast<size_t>(std::countr_zero(special)) / 8;  // little endian: the first byte is the lowest
    for (; at < last; ++at) {
      if (needs_escape(text[at])) return at;
      ascii = ascii && static_cast<unsigned char>(text[at]) < 0x80;
    }
  }
  return at;
}

std::string_view escape_of(char c, std::array<char, 6>& place) {
  constexpr std::string_view kHex = "0123456789abcdef";
  switch (c) {
    case '"':
      return "\\\"";
    case '\\':
      return "\\\\";
    case '\n':
      return "\\n";
    case '\r':
      return "\\r";
    case '\t':
      return "\\t";
    default:
      place = {'\\', 'u', '0', '0', kHex[static_cast<unsigned char>(c) >> 4], kHex[static_cast<unsigned char>(c) & 15]};
      return {place.data(), place.size()};
  }
}

}  // namespace

RowText::RowText() { arrow::util::InitializeUTF8(); }  // without which Arrow takes any bytes for UTF-8

void RowText::move_to(std::string& text) {
  text_.swap(text);
  text_.clear();
}

void RowText::begin_row() {
  row_begin_ = text_.size();
  valid_ = true;
}

size_t RowText::end_row() {
  const size_t bytes = text_.size() - row_begin_;
  text_.push_back('\n');
  return bytes;
}

bool RowText::is_too_long() const { return text_.size() - row_begin_ > data::kLongestRow; }

void RowText::append_string(std::string_view value) {
  if (is_too_long()) return;
  value = value.substr(0, data::kLongestRow + 1);  // what is longer makes the row too long in any case
  bool ascii = true;
  std::array<char, 6> place{};
  text_.push_back('"');
  for (size_t at = 0; at < value.size();) {
    const size_t end = end_of_run(value, at, ascii);
    text_.append(value.substr(at, end - at));
    if (end < value.size()) text_.append(escape_of(value[end], place));
    at = end + 1;
  }
  text_.push_back('"');
  if (!ascii && !arrow::util::ValidateUTF8(value)) valid_ = false;
}

void RowText::append_number(double value) {
  if (!std::isfinite(value)) return append("null");
  std::array<char, 32> digits{};
  const char* const end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  const std::string_view text(digits.data(), static_cast<size_t>(end - digits.data()));
  append(text);
  if (text.find_first_of(".e") == std::string_view::npos) append(".0");  // else it would be read as an integer
}

}  // namespace sluice::columnar
