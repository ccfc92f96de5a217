#pragma once

#include <array>
#include <cstdint>

namespace sluice {

class ByteReader;
class ByteWriter;

/// A sum of doubles without rounding: the same bits in whatever order and in whatever pieces numbers are added. value() rounds
/// once, to nearest, ties to even. Takes up to 2^63 numbers in all.
///
/// Source: Neal 2015, "Fast exact summation using small and large superaccumulators", section 3: a fixed-point number that
/// covers all doubles, in chunks that overlap so that carries are rare.
///
/// A value: copying copies. Not thread-safe. Does not fail: infinities and NaN give what IEEE addition gives, whatever the order.
/// Only read() fails, by InternalError.
class ExactSum {
 public:
  void add(double number);

  /// Adds a * b without rounding it, unless a part of the product is below the smallest double.
  void add_product(double a, double b);

  void add(const ExactSum& other);

  double value() const;

  bool operator==(const ExactSum& other) const;

  /// All of it, in few bytes where few chunks count: sums that are equal are written alike.
  void write(ByteWriter& bytes) const;

  /// Throws InternalError on what write() does not write.
  static ExactSum read(ByteReader& bytes);

 private:
  static constexpr int kChunks = 67;      // of 32 bits each: 2^-1075 up to 2^1069, room for 2^63 numbers
  static constexpr int kMostAdded = 512;  // numbers that a chunk has room for between two carries

  void carry();
  bool carry_to_size();

  std::array<int64_t, kChunks> chunks_{};  // chunk i counts 2^(32 i - 1075)
  int added_ = 0;                          // since the last carry
  bool has_nan_ = false, has_plus_infinity_ = false, has_minus_infinity_ = false;
};

/// Count, mean and spread of weighted numbers, of exact sums: the same bits in whatever order and pieces. Also far from 0 nothing
/// of the spread is lost.
struct ExactMoments {
  ExactSum weight, sum, squares;  // of w, w x, w x^2

  /// The product of weight and number is rounded to double: it is exact if both are floats.
  void add(double number, double weight = 1);
  void add(const ExactMoments& other);

  double count() const { return weight.value(); }
  double mean() const;                // 0 without weight
  double squared_deviations() const;  // sum of w (x - mean)^2, at least 0 unless NaN; 0 without weight

  bool operator==(const ExactMoments&) const = default;

  void write(ByteWriter& bytes) const;
  static ExactMoments read(ByteReader& bytes);
};

}  // namespace sluice
