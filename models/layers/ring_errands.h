#pragma once

#include <cstdint>
#include <span>

#include "models/layers/segment.h"

namespace sluice::models {

/// Queries of a block of a ring, and keys of a block before it that some of them see. The rank that has one of the two computes
/// it, and the one that has the other sends that. A plain value.
struct Errand {
  int queries_of = 0, keys_of = 0;  // blocks
  bool at_queries = false;          // computed by the rank that has the queries
  TokenRange queries, keys;         // of one sample; each query sees one of the keys at least

  bool any() const { return queries.size() > 0 && keys.size() > 0; }
  int computed_by() const { return at_queries ? queries_of : keys_of; }
  int helped_by() const { return at_queries ? keys_of : queries_of; }
};

/// What a rank does in one of the steps of a ring: it computes one errand, and helps with one.
struct RingStep {
  Errand own, helped;
  bool any = false, any_returns = false;  // of all ranks: some compute, and some of these for the queries of others
};

/// Steps 1 to ring / 2 have all pairs of blocks, each once: those that are `step` apart are computed where the queries are, and
/// those that are as far apart the other way around the ring where the keys are; where both are the same, each takes half of the
/// queries. So in each step all compute alike. A value of the layout alone: all ranks come to the same.
///
/// sample_offsets [S+1] of the whole pass; window: tokens that a token sees, itself included, 0: all before it.
RingStep step_of(const Segment& segment, std::span<const int64_t> sample_offsets, int64_t window, int step);

}  // namespace sluice::models
