#pragma once

#include <cstdint>
#include <vector>

namespace sluice {

/// A stretch of a flat buffer.
struct FloatRange {
  int64_t begin = 0;
  int64_t end = 0;  // after the last one

  int64_t size() const { return end - begin; }
  bool operator==(const FloatRange&) const = default;
};

inline constexpr int64_t kFloatsOfABlock = 1 << 14;  // where ranges of owners begin

/// What rank `rank` of `ranks` owns of `count` floats, in whole blocks: adds for all, and steps (Rajbhandari et al. 2020, ZeRO).
/// The ranges of all ranks follow one another; those of the last ones may be short or empty.
FloatRange owned_floats(int64_t count, int rank, int ranks);

inline constexpr int64_t kFloatsOfABucket = 8 << 20;  // 32 MiB: what is added over the ranks at once

/// The buckets that `count` floats are cut into, in order: all of `floats_of_bucket`, whole blocks, but the last one.
std::vector<FloatRange> buckets_of(int64_t count, int64_t floats_of_bucket = kFloatsOfABucket);

/// What rank `rank` of `ranks` owns of several buckets: its share of each, so that all ranks are busy with every bucket.
std::vector<FloatRange> owned_floats(const std::vector<FloatRange>& buckets, int rank, int ranks);

/// Of all of them together.
int64_t floats_of(const std::vector<FloatRange>& ranges);

}  // namespace sluice
