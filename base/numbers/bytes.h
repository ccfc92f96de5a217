#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"

namespace sluice {

/// Numbers and texts as bytes for another process of this program: little-endian, nothing between them, a text with its length
/// in front. Who reads must know what was written.
///
/// A value. Not thread-safe. Does not fail.
class ByteWriter {
 public:
  template <std::unsigned_integral Number>
  void number(Number value) {
    for (size_t i = 0; i < sizeof value; ++i) bytes_ += static_cast<char>(value >> (8 * i) & 0xff);
  }
  void number(int64_t value) { number(static_cast<uint64_t>(value)); }
  void number(double value) { number(std::bit_cast<uint64_t>(value)); }  // its bits: also those of a NaN

  void text(std::string_view value) {
    number(uint64_t{value.size()});
    bytes_ += value;
  }

  /// Bytes as they are, which only something that knows their number can read.
  void raw(std::string_view value) { bytes_ += value; }

  std::string take() { return std::exchange(bytes_, {}); }

 private:
  std::string bytes_;
};

/// Reads what a ByteWriter has written, in the same order. The bytes must stay where they are.
///
/// Failure: InternalError where there are fewer bytes than are asked for, or more than were read.
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : rest_(bytes) {}

  template <std::unsigned_integral Number>
  Number number() {
    const std::string_view bytes = raw(sizeof(Number));
    Number value = 0;
    for (size_t i = 0; i < sizeof value; ++i) {
      const auto byte = static_cast<unsigned char>(bytes[i]);
      value = static_cast<Number>(value | static_cast<Number>(byte) << (8 * i));
    }
    return value;
  }
  int64_t whole_number() { return static_cast<int64_t>(number<uint64_t>()); }
  double real_number() { return std::bit_cast<double>(number<uint64_t>()); }

  std::string_view text() { return raw(number<uint64_t>()); }

  std::string_view raw(uint64_t count) {
    SLUICE_CHECK(count <= rest_.size(), "bytes that end too early");
    const std::string_view bytes = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return bytes;
  }

  std::string_view rest() { return raw(rest_.size()); }

  void expect_end() const { SLUICE_CHECK(rest_.empty(), "bytes after the end"); }

 private:
  std::string_view rest_;
};

}  // namespace sluice
