#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/contract/node.h"
#include "engine/schedule/executor.h"
#include "engine/schedule/packer.h"
#include "engine/schedule/run_state.h"

namespace sluice::engine {

/// The head of a path: takes groups from its source, admits them against the token budget and the version gate, lets the
/// rollout make samples of them step by step (where they may take more credit, on demand), and packs what is finished into
/// micro-batches. Groups are admitted in order, so a later iteration never takes credit that an earlier one needs. Groups are
/// drawn in rounds: one, unless a filter has what it drops replaced; then the next round draws what is still missing once the
/// verdicts on the last one are in, so what is drawn never depends on timing. A path that measures begins in the iterations in
/// which it is due, with its source as it was at first, and passes over the others: then only an end travels along it. Used by
/// one executor only; waiting() and waits_for() may be asked by anybody.
class Intake final : public Stepper {
 public:
  struct Parts {
    int path = 0;  // index into Plan::paths
    std::unique_ptr<Source> source;
    std::unique_ptr<Rollout> rollout;  // may be null: then the source makes complete groups
    int64_t begun = 0;                 // the first iteration
    std::unique_ptr<MetricsRecorder> source_metrics;
    std::unique_ptr<MetricsRecorder> rollout_metrics;
  };

  /// `emit` puts a packet into the flow graph. `finished` is called once, when nothing will be emitted any more.
  Intake(RunState& state, Parts parts, std::function<void(Packet)> emit, std::function<void()> finished);

  int path() const override { return index_; }
  bool ready() override;
  void begin_step() override;
  void end_step() override;

  /// The iteration that groups are drawn for; -1: none yet.
  int64_t iteration() const { return seen_iteration_.load(); }

  /// Of the rollout, after its last step.
  Rollout::PoolBytes pool_bytes() const { return {seen_pool_held_.load(), seen_pool_used_.load()}; }

  /// What keeps the next group.
  enum class Wait { kNothing, kCredit, kVerdicts, kVersion, kReports };
  Wait waiting() const;

  /// The same, as a person would say it; empty: nothing.
  std::string waits_for() const;

 private:
  class RolloutSink;

  bool is_due(int64_t iteration) const;       // a path that measures; others are always
  bool passes_over(int64_t iteration) const;  // it takes no part in it
  bool has_version(int64_t version) const;    // of all that it samples from
  bool may_begin() const;                     // the next iteration may start
  bool may_fetch() const;                     // another group of the current round is wanted
  bool fits() const;                          // the group that was fetched can be admitted
  bool may_step() const;                      // the rollout has something to do
  bool round_complete() const;                // all groups of the round are finished
  bool undecided() const;                     // the filter has groups to judge or may want another round
  bool wants_round() const;                   // the filter's verdicts ask for another one
  bool iteration_complete() const;
  bool over() const;          // nothing more will come
  bool wants_to_end() const;  // early, if no other path is ahead
  bool ends_early() const { return state_.interrupted && !has_to_finish_; }
  int node() const { return path_.plan.maker(); }
  const PlanNode& maker_plan() const { return state_.plan.nodes[static_cast<size_t>(node())]; }

  void guarded(void (Intake::*half)());
  void turn_to(int node);
  WorkPlace place() const;
  void take_in();
  void bring_out();
  void begin_iteration();
  void pass_over_iteration();
  void begin_sampling();
  void begin_round(int64_t missing);
  void fetch_group();
  void drop_group(int64_t index);
  bool admit_group();
  void finish_group(Group group);
  void check_columns(const Group& group, int writer) const;
  void emit_batches(std::vector<Packer::Batch> batches);
  size_t slot_of(const ColumnSpec& spec) const;
  void tell_observers(const BatchState& packed, const std::vector<Group::NamedColumn>& columns);
  void end_iteration();
  void hand_on_end(bool passed_over);
  void save_state(int node, const NodeBase& implementation);
  void finish_run();
  int64_t worst_tokens(const Group& group) const;

  RunState& state_;
  const int index_;  // of the path
  PathState& path_;
  const PlanNode& source_plan_;
  Parts parts_;
  const std::function<void(Packet)> emit_;
  const std::function<void()> finished_;
  const Readers& readers_;
  const int executor_;
  std::vector<const VersionGate*> gates_;  // of the trained models that it samples from
  const bool on_demand_;                   // groups are admitted with less than they may become
  const int64_t quota_;                    // groups that an iteration is to have
  const NodeNeeds* const filter_;          // of the refilling filter; null: none
  Packer packer_;

  Iteration iteration_;
  bool in_iteration_ = false;
  bool data_ended_ = false;
  bool follows_ = false;        // it measures, or its data have ended: other paths decide how long the run goes on
  bool has_to_finish_ = false;  // the iteration at hand, although the run is interrupted: another path has begun it
  bool finished_run_ = false;
  int64_t round_end_ = 0;             // groups to fetch in this iteration before the next verdicts
  int64_t fetched_ = 0;               // groups of this iteration taken from the source
  int64_t done_ = 0;                  // of these: finished, or dropped
  int64_t last_finished_ = 0;         // index
  bool round_flushed_ = false;        // everything of the round has been emitted
  std::optional<Group> waiting_;      // fetched, not admitted yet
  int64_t waiting_tokens_ = 0;        // that it is admitted with
  int64_t refused_tokens_ = 0;        // on demand: of credit that the rollout's last step could not have; 0: it had all
  std::map<int64_t, Credit> credit_;  // of groups that were admitted and not emitted, by index
  std::vector<Group> complete_;       // that the source made whole, until the step's second half
  int at_ = 0;                        // the node whose code runs
  Slice slice_;                       // what the step at hand amounts to
  int64_t sequence_ = 0;
  NodeState first_state_;  // of the source of a path that measures

  std::atomic<int64_t> seen_iteration_, seen_waiting_tokens_{0};  // for waits_for()
  std::atomic<int64_t> seen_pool_held_{0}, seen_pool_used_{0};
  std::atomic<bool> seen_in_iteration_{false}, seen_undecided_{false};
};

}  // namespace sluice::engine
