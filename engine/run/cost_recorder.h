#pragma once

#include <atomic>
#include <map>
#include <mutex>
#include <vector>

#include "engine/observe/costs.h"
#include "engine/observe/iteration_log.h"
#include "engine/observe/least_squares.h"
#include "engine/observe/undisturbed_line.h"
#include "engine/observe/work_observer.h"
#include "engine/plan/plan.h"
#include "engine/run/rank_costs.h"

namespace sluice::engine {

/// Measures what the work of a run costs, while it goes on: sums for a fit per node, and lengths. Memory is constant. What the
/// first iteration took is forgotten as soon as there is another, because it is slower: memory is touched, files are read.
///
/// With roles every rank has one. Rank 0, which writes the costs, is told by the others what it does not see.
class CostRecorder final : public WorkObserver {
 public:
  explicit CostRecorder(const Plan& plan, int rank = 0);

  void ended(const Slice& slice) override;
  void packed(int64_t iteration, const Layout& layout) override;

  /// The metrics of an iteration say what filters kept, and what rollouts guessed. On any thread.
  void reported(const IterationReport& report);

  /// On another rank than 0, for that one: so far. On any thread.
  RankCosts told() const;

  /// On rank 0: what another rank has told last. Likewise.
  void hear(int rank, RankCosts costs);

  /// The fits; of nodes that this rank does not have the mean of those that others have told. When no work is under way.
  Costs costs() const;

 private:
  struct Sums {  // of a node
    void add(const Slice& slice, bool is_barrier, bool saves);

    bool warm = false;            // past its first iteration
    UndisturbedLine batches;      // micro-batches, by tokens
    double parts_us = 0;          // of an end that is under way
    UndisturbedLine ends;         // ends of iterations, by tokens of a barrier
    UndisturbedLine saving_ends;  // likewise, where models are saved
    LeastSquares<3> steps;        // step, tokens sampled, prompt tokens
    LeastSquares<2> groups;       // of a source: groups, nothing
  };
  struct alignas(64) OfNode {
    mutable std::mutex mutex;  // between its executor's thread and who tells
    Sums sums;
  };
  struct alignas(64) Place {  // an executor; used by its thread alone
    int64_t last_end_ns = -1;
    int64_t gaps = 0, gap_ns = 0;
  };
  struct Filtered {
    double arrived = 0, passed = 0;
  };
  struct Guessed {
    double steps = 0, drafted = 0, kept = 0;
  };

  NodeCosts costs_of(size_t node) const;
  NodeCosts told_of(size_t node) const;
  double read_share() const;
  int64_t range_of(int64_t iteration) const;

  const Plan& plan_;
  const int rank_;
  std::vector<OfNode> nodes_;  // by node
  std::vector<Place> places_;  // by executor
  std::vector<Lengths> lengths_;
  std::atomic<int64_t> read_prompt_tokens_{0}, sample_prompt_tokens_{0};  // see RankCosts

  mutable std::mutex mutex_;        // guards what follows
  std::vector<Filtered> filtered_;  // by node
  std::vector<Guessed> guessed_;    // likewise
  int64_t iterations_ = 0;
  std::map<int, RankCosts> told_;  // by rank
};

}  // namespace sluice::engine
