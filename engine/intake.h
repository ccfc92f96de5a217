#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "engine/executor.h"
#include "engine/node.h"
#include "engine/packer.h"
#include "engine/run_state.h"

namespace sluice::engine {

/// The head of the graph: takes groups from the source, admits them against the token budget and the version gate, lets the rollout make
/// samples of them step by step, and packs what is finished into micro-batches. Groups are admitted in order, so a later iteration never
/// takes credit that an earlier one needs. Used by one executor thread only.
class Intake final : public Stepper {
 public:
  struct Parts {
    std::unique_ptr<Source> source;
    std::unique_ptr<Rollout> rollout;  // may be null: then the source makes complete groups
    std::unique_ptr<MetricsRecorder> source_metrics;
    std::unique_ptr<MetricsRecorder> rollout_metrics;
  };

  /// `emit` puts a packet into the flow graph. `finished` is called once, when nothing will be emitted any more.
  Intake(RunState& state, Parts parts, Reducer& reducer, std::function<void(Packet)> emit, std::function<void()> finished);

  bool ready() override;
  void step() override;

 private:
  class RolloutSink;

  bool may_begin() const;        // the next iteration may start
  bool may_fetch() const;        // another group of the current iteration is wanted
  bool fits() const;             // the group that was fetched can be admitted
  bool iteration_complete() const;
  bool drained() const;          // nothing more will come

  void advance();
  void begin_iteration();
  void fetch_group();
  void admit_group();
  void step_rollout();
  void finish_group(Group group);
  void emit_batches(std::vector<Packer::Batch> batches);
  void end_iteration();
  void finish_run();
  int64_t worst_tokens(const Group& group) const;

  RunState& state_;
  const PlanNode& source_plan_;
  const PlanNode* const rollout_plan_;  // null: no rollout
  Parts parts_;
  Reducer& reducer_;
  const std::function<void(Packet)> emit_;
  const std::function<void()> finished_;
  const std::vector<int> readers_;      // ordinary nodes that read each column
  const int token_readers_;             // ordinary nodes that read any column
  const int executor_;
  const int64_t groups_per_iteration_;
  Packer packer_;

  Iteration iteration_{.index = -1};
  bool in_iteration_ = false;
  bool data_ended_ = false;
  bool finished_run_ = false;
  int64_t fetched_ = 0;                 // groups of this iteration taken from the source
  int64_t done_ = 0;                    // of these: finished
  std::optional<Group> waiting_;        // fetched, not admitted yet
  int64_t waiting_tokens_ = 0;          // its worst case
  std::map<int64_t, int64_t> credit_;   // of groups in the rollout, by index
  int64_t sequence_ = 0;
};

}  // namespace sluice::engine
