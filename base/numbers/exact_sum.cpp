#include "base/numbers/exact_sum.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "base/numbers/bytes.h"

namespace sluice {
namespace {

constexpr int kMantissaBits = 52;
constexpr int kChunkBits = 32;
constexpr int kLowestExponent = -1075;  // of the lowest bit of the lowest chunk
constexpr uint64_t kChunkMask = (uint64_t{1} << kChunkBits) - 1;

constexpr int64_t kMostOfHighestChunk = int64_t{1} << 62;  // far above that of 2^63 numbers, and two of them do not overflow

// What write() says of a sum, in one byte.
constexpr unsigned kNan = 1, kPlusInfinity = 2, kMinusInfinity = 4, kNegative = 8;

}  // namespace

void ExactSum::add(double number) {
  const auto bits = std::bit_cast<uint64_t>(number);
  auto exponent = static_cast<int>(bits >> kMantissaBits & 0x7ff);
  uint64_t mantissa = bits & ((uint64_t{1} << kMantissaBits) - 1);
  if (exponent == 0x7ff) {
    has_nan_ |= mantissa != 0;
    has_plus_infinity_ |= number > 0;
    has_minus_infinity_ |= number < 0;
    return;
  }
  if (exponent == 0)
    exponent = 1;  // subnormal
  else
    mantissa |= uint64_t{1} << kMantissaBits;
  if (added_ == kMostAdded) carry();
  ++added_;
  const int chunk = exponent / kChunkBits, shift = exponent % kChunkBits;
  const auto low = static_cast<int64_t>(mantissa << shift & kChunkMask);
  const auto high = static_cast<int64_t>(mantissa >> (kChunkBits - shift));
  if (bits >> 63 != 0) {
    chunks_[static_cast<size_t>(chunk)] -= low;
    chunks_[static_cast<size_t>(chunk) + 1] -= high;
  } else {
    chunks_[static_cast<size_t>(chunk)] += low;
    chunks_[static_cast<size_t>(chunk) + 1] += high;
  }
}

void ExactSum::add_product(double a, double b) {
  const double product = a * b;
  add(product);
  if (std::isfinite(product)) add(std::fma(a, b, -product));
}

void ExactSum::add(const ExactSum& other) {
  ExactSum carried = other;
  carried.carry();
  carry();
  for (size_t i = 0; i < kChunks; ++i) chunks_[i] += carried.chunks_[i];
  added_ = 1;
  has_nan_ |= other.has_nan_;
  has_plus_infinity_ |= other.has_plus_infinity_;
  has_minus_infinity_ |= other.has_minus_infinity_;
}

// Afterwards every chunk but the highest is in [0, 2^32): one representation for each number.
void ExactSum::carry() {
  int64_t over = 0;
  for (size_t i = 0; i + 1 < kChunks; ++i) {
    const int64_t chunk = chunks_[i] + over;
    over = chunk >> kChunkBits;  // towards minus infinity
    chunks_[i] = chunk - over * (int64_t{1} << kChunkBits);
  }
  chunks_.back() += over;
  added_ = 0;
}

// Afterwards it has no sign, so that all chunks above the highest that counts are zero. Returns whether it was negative.
bool ExactSum::carry_to_size() {
  carry();
  if (chunks_.back() >= 0) return false;
  for (int64_t& chunk : chunks_) chunk = -chunk;
  carry();
  return true;
}

bool ExactSum::operator==(const ExactSum& other) const {
  ExactSum a = *this, b = other;
  a.carry();
  b.carry();
  return a.chunks_ == b.chunks_ && a.has_nan_ == b.has_nan_ && a.has_plus_infinity_ == b.has_plus_infinity_ &&
         a.has_minus_infinity_ == b.has_minus_infinity_;
}

double ExactSum::value() const {
  if (has_nan_ || (has_plus_infinity_ && has_minus_infinity_)) return std::numeric_limits<double>::quiet_NaN();
  if (has_plus_infinity_) return std::numeric_limits<double>::infinity();
  if (has_minus_infinity_) return -std::numeric_limits<double>::infinity();

  ExactSum size = *this;
  const bool negative = size.carry_to_size();
  size_t top = kChunks;
  while (top > 0 && size.chunks_[top - 1] == 0) --top;
  if (top == 0) return 0;
  --top;

  // The two highest chunks that count, and one bit for whether anything is below: enough to round once.
  const auto chunk_at = [&](size_t below) { return top >= below ? static_cast<uint64_t>(size.chunks_[top - below]) : 0; };
  uint64_t number = chunk_at(0);
  int exponent = kLowestExponent + kChunkBits * static_cast<int>(top);
  size_t taken = 1;
  int free = std::countl_zero(number);
  uint64_t rest = 0;  // bits of the chunk that was taken in part
  while (free > 0) {
    const uint64_t next = chunk_at(taken++);
    const int bits = std::min(free, kChunkBits);
    number = number << bits | next >> (kChunkBits - bits);
    rest = bits < kChunkBits ? next & ((uint64_t{1} << (kChunkBits - bits)) - 1) : 0;
    exponent -= bits;
    free -= bits;
  }
  bool is_more = rest != 0;
  for (size_t i = taken; i <= top; ++i) is_more |= chunk_at(i) != 0;

  // 64 bits, the highest of which is set: 53 stay, or fewer where the result is subnormal.
  const int dropped = std::max(64 - (kMantissaBits + 1), kLowestExponent + 1 - exponent);
  const uint64_t half = uint64_t{1} << (dropped - 1), below = number & (2 * half - 1);
  number >>= dropped;
  if (below > half || (below == half && (is_more || (number & 1) != 0))) ++number;
  const double result = std::ldexp(static_cast<double>(number), exponent + dropped);
  return negative ? -result : result;
}

// A byte of flags; then the first chunk that counts, how many follow up to the last, and each: 4 bytes, 8 of the highest chunk.
void ExactSum::write(ByteWriter& bytes) const {
  ExactSum size = *this;
  const bool negative = size.carry_to_size();
  size_t first = 0, last = kChunks;  // after the last one
  while (last > 0 && size.chunks_[last - 1] == 0) --last;
  while (first < last && size.chunks_[first] == 0) ++first;
  unsigned flags = 0;
  if (has_nan_) flags |= kNan;
  if (has_plus_infinity_) flags |= kPlusInfinity;
  if (has_minus_infinity_) flags |= kMinusInfinity;
  if (negative) flags |= kNegative;
  bytes.number(static_cast<uint8_t>(flags));
  bytes.number(static_cast<uint8_t>(first));
  bytes.number(static_cast<uint8_t>(last - first));
  for (size_t i = first; i < last; ++i) {
    if (i + 1 < kChunks)
      bytes.number(static_cast<uint32_t>(size.chunks_[i]));
    else
      bytes.number(size.chunks_[i]);
  }
}

ExactSum ExactSum::read(ByteReader& bytes) {
  const unsigned flags = bytes.number<uint8_t>();
  const size_t first = bytes.number<uint8_t>(), count = bytes.number<uint8_t>();
  SLUICE_CHECK(flags < 2 * kNegative && first + count <= kChunks, "bytes that are no sum");
  ExactSum sum;
  sum.has_nan_ = (flags & kNan) != 0;
  sum.has_plus_infinity_ = (flags & kPlusInfinity) != 0;
  sum.has_minus_infinity_ = (flags & kMinusInfinity) != 0;
  const int64_t sign = (flags & kNegative) != 0 ? -1 : 1;
  for (size_t i = first; i < first + count; ++i) {
    const int64_t chunk = i + 1 < kChunks ? int64_t{bytes.number<uint32_t>()} : bytes.whole_number();
    SLUICE_CHECK(0 <= chunk && chunk < kMostOfHighestChunk, "bytes that are no sum");
    sum.chunks_[i] = sign * chunk;
  }
  sum.carry();
  return sum;
}

void ExactMoments::add(double number, double of_weight) {
  weight.add(of_weight);
  const double weighted = of_weight * number;
  sum.add(weighted);
  squares.add_product(weighted, number);
}

void ExactMoments::add(const ExactMoments& other) {
  weight.add(other.weight);
  sum.add(other.sum);
  squares.add(other.squares);
}

void ExactMoments::write(ByteWriter& bytes) const {
  for (const ExactSum* part : {&weight, &sum, &squares}) part->write(bytes);
}

ExactMoments ExactMoments::read(ByteReader& bytes) {
  ExactMoments moments;
  for (ExactSum* part : {&moments.weight, &moments.sum, &moments.squares}) *part = ExactSum::read(bytes);
  return moments;
}

// Of the exact sum, not of its nearest double: n times the same numbers have the mean of these.
double ExactMoments::mean() const {
  const double total = count();
  if (total == 0) return 0;
  const double high = sum.value(), quotient = high / total;
  if (!std::isfinite(quotient)) return quotient;
  ExactSum rest = sum;
  rest.add(-high);
  return quotient + (std::fma(-quotient, total, high) + rest.value()) / total;
}

// sum w (x - m)^2 = sum w x^2 - 2 m sum w x + m^2 sum w, all exact but for what is below 2^-159 of a sum.
double ExactMoments::squared_deviations() const {
  const double m = mean();
  if (!std::isfinite(m)) return std::numeric_limits<double>::quiet_NaN();
  ExactSum result = squares;
  const auto for_each_part = [](ExactSum rest, auto action) {
    for (int i = 0; i < 3; ++i) {
      const double part = rest.value();
      action(part);
      rest.add(-part);
    }
  };
  for_each_part(sum, [&](double part) { result.add_product(-2 * m, part); });
  const double m_squared = m * m, error = std::fma(m, m, -m_squared);
  for_each_part(weight, [&](double part) {
    result.add_product(m_squared, part);
    result.add_product(error, part);
  });
  return std::max(0.0, result.value());
}

}  // namespace sluice
