#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/numbers/random.h"
#include "engine/contract/registry.h"
#include "engine/contract/spec/spec.h"

namespace sluice::engine::toy {

/// A random pipeline of toys, in a form that both the engine and the sequential interpreter understand.
struct RandomPath {
  struct Step {
    std::string name;
    std::vector<std::string> inputs;
    std::vector<std::string> reads;
    bool barrier = false;
    int64_t drop_one_in = 0;  // above 0: a filter, which writes nothing
    bool refills = false;
    std::string stream;  // what arrives: the last filter in front of it; empty: all groups
    std::string on;

    bool filters() const { return drop_one_in > 0; }
  };

  int64_t iterations = 1, groups = 1, samples = 1, worst = 4, lag = 0, spare = 0, micro_batch = 0;
  int64_t most_draws = 1;
  double oversample = 1;
  std::string pace = "even";  // of its rollout: see toy_rollout
  int64_t timing_seed = 0;
  bool first_done_first = false;
  bool trained = false;
  bool on_demand = false;
  bool remembers = false;   // the steps that write: see toy_mix
  std::vector<Step> steps;  // in topological order; each that is no filter writes a column of its own name
  std::string trained_column, train_input;
  std::string rollout_on;
  std::string prefix;  // of its nodes' names

  /// Where it is a path beside the one that trains.
  std::string samples_from;                 // a model that is trained here, if it does not sample from its own; empty: none
  std::optional<int64_t> every_iterations;  // it measures
  bool before_training = false;             // likewise
  int64_t share = 0;                        // of the budget

  bool measures() const { return every_iterations || before_training; }
  std::string source() const { return prefix + "source"; }
  std::string model() const { return prefix + "policy"; }  // that it trains

  /// What its rollout samples from; empty: nothing that is trained.
  std::string sampled_model() const { return samples_from.empty() && trained ? model() : samples_from; }
};

/// Up to two paths beside the main one. Each that does not measure may train, and sample from its own model or from another's.
struct RandomPipeline {
  RandomPath main;
  std::vector<RandomPath> others;
};

template <class T>
const T& any_of_these(const std::vector<T>& choices, RandomStream& random) {
  return choices[random.below(choices.size())];
}

/// One of all that are possible: forks, joins, barriers, filters, lags.
RandomPath random_path(uint64_t seed);

RandomPipeline random_pipeline(uint64_t seed);

/// `pause_us`: the longest pause of a step of a node; `budget`: tokens in flight.
PipelineSpec spec_of(const RandomPath& path, uint64_t seed, int64_t pause_us, int64_t budget);

PipelineSpec spec_of(const RandomPipeline& paths, uint64_t seed, int64_t pause_us, int64_t budget);

/// The smallest budget that the check accepts, and at random some more.
int64_t budget_of(const RandomPath& path, const Registry& registry);

/// Gives each path but the main one such a share, and returns the budget of all.
int64_t divide_budget(RandomPipeline& paths, const Registry& registry);

}  // namespace sluice::engine::toy
