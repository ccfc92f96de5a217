#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

#include "engine/contract/node.h"
#include "engine/observe/costs.h"
#include "engine/plan/plan.h"
#include "engine/schedule/stages/sample_credit.h"
#include "engine/simulation/cost_model.h"
#include "engine/simulation/length_draws.h"

namespace sluice::engine {

/// Tokens of samples that were guessed and are right, on average so many a step: what is over counts for the next one.
class RightGuesses {
 public:
  explicit RightGuesses(Guesses guesses) : guesses_(guesses) {}

  bool made(int64_t decoding, int64_t prompt_tokens) const {
    if (guesses_.drafted_per_step == 0 || decoding == 0) return false;
    return guesses_.samples == 0 || (decoding <= guesses_.samples && prompt_tokens == 0);
  }

  double drafted_per_step() const { return guesses_.drafted_per_step; }

  /// Of a sample in a step, at most `most`.
  int64_t next(int64_t most) {
    over_ += guesses_.kept_per_step;
    const int64_t right = std::min(static_cast<int64_t>(over_), most);
    over_ -= static_cast<double>(right);
    return right;
  }

 private:
  const Guesses guesses_;
  double over_ = 0;
};

/// A rollout that samples nothing: lengths are drawn, and steps count tokens. As in continuous batching samples wait for a place,
/// read their prompt, then get a token a step, and those that were guessed right. `plan` and `costs` outlive it.
class SimulatedRollout final : public Rollout {
 public:
  SimulatedRollout(const Plan& plan, const PlanPath& path, const Costs& costs);

  int64_t worst_tokens(const Group& group) const override;
  int64_t least_tokens(const Group& group) const override;
  void start(Group group) override;

  /// Decides what the step does; step() then does it.
  StepWork next_step();

  void step(Sink& sink) override;
  bool idle() const override { return groups_.empty(); }
  bool blocked() const override { return on_demand_ && credit_.blocked(); }

 private:
  using Key = SampleCredit::Key;

  struct Sample {
    Key key;
    int64_t response = 0;
    int64_t prompt_left = 0;
    int64_t response_left = 0;
    int64_t reads = 0;    // in the step at hand
    int64_t samples = 0;  // likewise
    bool travels = true;  // false: made beside the group
  };
  struct Running {
    int64_t prompt = 0;
    std::vector<int64_t> responses;
    int64_t unfinished = 0;
    Group group;
  };
  using Groups = std::map<int64_t, Running>;  // by index

  void guess(int64_t decoding, StepWork& work);
  void end_sample(const Sample& sample, Sink& sink);
  void settle(Sink& sink);
  void finish(Groups::iterator found, Sink& sink);

  const LengthDraws draws_;
  const int64_t samples_;       // of a group
  const int64_t side_samples_;  // beside them
  const int64_t most_running_;
  const int64_t step_tokens_;
  const bool on_demand_;
  RightGuesses guesses_;
  const std::vector<ColumnSpec> columns_;
  SampleCredit credit_;
  std::map<Key, Sample> waiting_;  // the oldest first
  std::vector<Sample> running_;
  std::map<Key, Sample> preempted_;
  Groups groups_;
  bool decided_ = false;
};

}  // namespace sluice::engine
