#pragma once

#include <cstdint>

namespace sluice {

/// A stretch of a flat buffer.
struct FloatRange {
  int64_t begin = 0;
  int64_t end = 0;  // behind the last one

  int64_t size() const { return end - begin; }
  bool operator==(const FloatRange&) const = default;
};

inline constexpr int64_t kFloatsOfABlock = 1 << 14;  // where ranges of owners begin

/// What rank `rank` of `ranks` owns of `count` floats, in whole blocks: adds for all, and steps (Rajbhandari et al. 2020, ZeRO). The
/// ranges of all ranks follow one another; those of the last ones may be short or empty.
FloatRange owned_floats(int64_t count, int rank, int ranks);

}  // namespace sluice
