#include "models/layers/ring_errands.h"

#include <algorithm>

namespace sluice::models {
namespace {

// Of the one sample that goes from one block to the other: what of it those queries see.
Errand errand_between(const Segment& segment, std::span<const int64_t> offsets, int64_t window, int queries_of, int keys_of,
                      bool at_queries) {
  Errand errand{queries_of, keys_of, at_queries, segment.block_of(queries_of), segment.block_of(keys_of)};
  const auto next = std::ranges::upper_bound(offsets, errand.keys.end);  // the end of the sample, where it goes on
  if (next == offsets.begin() || next == offsets.end()) return {};
  const int64_t first = *(next - 1);
  errand.queries.end = std::min(errand.queries.end, *next);
  errand.keys.begin = std::max(errand.keys.begin, first);
  if (window == 0) return errand;
  errand.keys.begin = std::max(errand.keys.begin, errand.queries.begin + 1 - window);
  errand.queries.end = std::min(errand.queries.end, errand.keys.end - 1 + window);
  return errand;
}

}  // namespace

RingStep step_of(const Segment& segment, std::span<const int64_t> sample_offsets, int64_t window, int step) {
  const int ring = segment.ring, block = segment.block();
  RingStep result;
  const auto take = [&](Errand errand) {
    if (!errand.any()) return;
    result.any = true;
    result.any_returns |= !errand.at_queries;
    if (errand.computed_by() == block) result.own = errand;
    if (errand.helped_by() == block) result.helped = errand;
  };
  for (int keys_of = 0; keys_of < ring; ++keys_of) {
    const int near = keys_of + step, far = keys_of + ring - step;
    Errand at_queries, at_keys;
    if (near < ring) at_queries = errand_between(segment, sample_offsets, window, near, keys_of, true);
    if (far < ring) at_keys = errand_between(segment, sample_offsets, window, far, keys_of, false);
    if (near == far && at_queries.any())  // the same pair: each takes half of it
      at_queries.queries.end = at_keys.queries.begin = at_queries.queries.begin + at_queries.queries.size() / 2;
    take(at_queries), take(at_keys);
  }
  return result;
}

}  // namespace sluice::models
