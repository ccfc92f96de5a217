#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "engine/contract/registry.h"
#include "engine/contract/spec/pipeline_builder.h"

namespace sluice::engine::toy {

/// A pipeline of toys and tallies (tests/engine/tally_nodes.h) for one rank, two or three, whose results do not depend on how
/// many there are, nor on pauses.
struct RanksShape {
  int64_t slots = 6;  // so that two ranks have whole ones, and three
  int64_t groups = 1, samples = 1, worst = 2, micro_batch = 2, lag = 0, iterations = 1, steps = 1, pause_us = 0;
  bool filters = false, refills = false, measures = false;
  bool trains = true;
  bool whitens = true;        // before it trains: a barrier
  int64_t budget = 0;         // tokens in flight; 0: enough for everything
  std::string pace = "even";  // of its rollouts: see toy_rollout
  bool trains_two = false;    // models, by nodes on executors of their own

  /// Ranks that train and that sample, where these are others: 0: no roles. And the budget of those that sample.
  int training_ranks = 0, sampling_ranks = 0;
  int64_t sampling_budget = 0;  // 0: `budget`
  bool is_elastic = false;      // ranks that sample may be lost
  bool on_demand = false;       // rollouts take credit as samples grow

  /// A node of one rank that waits for a file. It says that it does by another, with `.reached` after its name.
  struct Stuck {
    std::string node;  // record or train
    int rank = 0;
    int64_t iteration = 0;
    bool at_the_end = false;  // of the iteration, of a node that trains: when all ranks have added up
    std::string until;        // empty: nothing is stuck
  } stuck = {};
};

RanksShape random_ranks_shape(uint64_t seed);

/// Nodes source, rollout, filter, record, whiten, train, train_other and publish, those that there are; behind `held_` the first
/// ones of a path that measures. `more`: what else is set.
PipelineSpec ranks_pipeline(const RanksShape& shape, uint64_t seed, const std::function<void(PipelineBuilder&)>& more = {});

/// The smallest budget with which ranks of that pipeline cannot stall. Throws std::runtime_error where it is refused.
int64_t least_budget(const RanksShape& shape, uint64_t seed, const Registry& registry, int ranks);

}  // namespace sluice::engine::toy
