#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/observe/costs.h"
#include "engine/plan/plan.h"
#include "engine/schedule/stages/executor.h"

namespace sluice::engine {

/// What the next step of source and rollout would do.
struct StepWork {
  int64_t groups = 0;         // taken from the source
  int64_t prompt_tokens = 0;  // read
  int64_t sampled_tokens = 0;
  int64_t kept_drafts = 0;    // of these, guessed before
  double drafted_tokens = 0;  // guessed, on average
  double draft_passes = 0;    // likewise of one sample, the most
};

/// How long each piece of work of a plan takes, by the costs of its nodes. One thread.
class CostModel {
 public:
  /// Of a rank, on which nodes that it does not have cost nothing. `plan` outlives the model.
  CostModel(const Plan& plan, const Costs& costs, int rank = 0);

  /// In the order in which the executors begin the work: a barrier's end takes in what was put aside for it before. On several
  /// ranks the end of a node that adds up over them is begun once more after each point at which they meet.
  int64_t of_work_ns(const Work& work);

  int64_t of_step_ns(int path, const StepWork& step) const;

  /// What a person must know of the costs: nodes that were not measured, or on another number of cores. One line each, the same
  /// on all ranks.
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  struct Held {  // by a barrier
    int64_t batches = 0, tokens = 0;
  };
  struct Ending {  // an iteration, between points at which the ranks meet
    int64_t iteration = -1;
    int64_t met = 0;
  };

  NodeCosts found(const PlanNode& node, const Costs& costs);
  int64_t of_end_ns(size_t node, int64_t iteration);
  double of_held_us(size_t node) const;
  double of_last_part_us(size_t node, int64_t iteration) const;
  double of_part_us(size_t node, int64_t iteration);

  const Plan& plan_;
  std::vector<NodeCosts> costs_;  // by node, for the cores that it has here
  std::vector<Guesses> guesses_;  // likewise
  std::vector<Held> held_;        // by node
  std::vector<Ending> endings_;   // likewise; without an iteration: its packets are worked on
  std::vector<std::string> notes_;
};

/// Whether, on several ranks, a node waits at its end for what others add.
bool adds_over_ranks(const Plan& plan, const PlanNode& node);

/// Costs by what is known without a run: 2 floating point operations for each parameter and token in a pass forward and in
/// decoding, 6 where it is trained, at `gflops` (billions a second) for each core; everything else is free. Prompts are taken
/// to have half the most tokens that they may have, responses any length up to theirs alike.
Costs estimated_costs(const Plan& plan, double gflops);

}  // namespace sluice::engine
