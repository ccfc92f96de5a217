#include "base/numbers/float_range.h"

#include <algorithm>

#include "base/error.h"

namespace sluice {
namespace {

int64_t divided_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace

FloatRange owned_floats(int64_t count, int rank, int ranks) {
  SLUICE_CHECK(0 <= rank && rank < ranks && count >= 0, "an owner that is none of the ranks");
  const int64_t most = divided_up(divided_up(count, kFloatsOfABlock), ranks) * kFloatsOfABlock;
  return {std::min(count, rank * most), std::min(count, (rank + 1) * most)};
}

std::vector<FloatRange> buckets_of(int64_t count, int64_t floats_of_bucket) {
  SLUICE_CHECK(count >= 0 && floats_of_bucket > 0 && floats_of_bucket % kFloatsOfABlock == 0, "buckets are of whole blocks");
  std::vector<FloatRange> buckets;
  for (int64_t begin = 0; begin < count; begin += floats_of_bucket)
    buckets.push_back({begin, std::min(count, begin + floats_of_bucket)});
  return buckets;
}

std::vector<FloatRange> owned_floats(const std::vector<FloatRange>& buckets, int rank, int ranks) {
  std::vector<FloatRange> owned;
  for (const FloatRange& bucket : buckets) {
    const FloatRange share = owned_floats(bucket.size(), rank, ranks);
    owned.push_back({bucket.begin + share.begin, bucket.begin + share.end});
  }
  return owned;
}

int64_t floats_of(const std::vector<FloatRange>& ranges) {
  int64_t floats = 0;
  for (const FloatRange& range : ranges) floats += range.size();
  return floats;
}

}  // namespace sluice
