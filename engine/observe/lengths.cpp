#include "engine/observe/lengths.h"

#include <bit>

#include "base/error.h"

namespace sluice::engine {
namespace {

constexpr int64_t kExactBelow = 128;
constexpr int kStepsAnOctave = 64;

// The middle of the step that a length lies in.
int64_t rounded(int64_t length) {
  if (length < kExactBelow) return length;
  const int64_t octave = int64_t{1} << (std::bit_width(static_cast<uint64_t>(length)) - 1);
  const int64_t step = octave / kStepsAnOctave;
  return length / step * step + step / 2;
}

}  // namespace

void LengthHistogram::add(int64_t length, int64_t count) {
  SLUICE_CHECK(length >= 0 && count >= 0, "negative lengths cannot be counted");
  if (count == 0) return;
  counts_[rounded(length)] += count;
  total_ += count;
}

double LengthHistogram::mean() const {
  double sum = 0;
  for (const auto& [length, count] : counts_) sum += static_cast<double>(length) * static_cast<double>(count);
  return total_ == 0 ? 0 : sum / static_cast<double>(total_);
}

int64_t LengthHistogram::at(double u) const {
  SLUICE_CHECK(total_ > 0, "an empty histogram has no lengths");
  auto left = static_cast<int64_t>(u * static_cast<double>(total_));
  for (const auto& [length, count] : counts_) {
    if (left < count) return length;
    left -= count;
  }
  return counts_.rbegin()->first;
}

}  // namespace sluice::engine
