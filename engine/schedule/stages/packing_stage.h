#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "engine/contract/columns/token_budget.h"
#include "engine/schedule/stages/packer.h"
#include "engine/schedule/stages/stage_host.h"
#include "engine/schedule/state/run_state.h"

namespace sluice::engine {

/// The stage after a source, or after the rollout if there is one, that packs complete groups into micro-batches, with their
/// credit, and puts these and the ends of iterations into the flow graph. Used by the executor of the source only. What a group
/// has against the contract of who made it throws UserError.
class PackingStage {
 public:
  /// `maker`: of the groups, whose metrics count them. `emit` puts a packet into the flow graph.
  PackingStage(RunState& state, int path, StageHost& maker, std::function<void(Packet)> emit);

  /// `credit`: of the group, which goes on with its micro-batch. `last`: the iteration has no other group.
  void add(const Iteration& iteration, Group group, Credit credit, bool last);
  void skip(const Iteration& iteration, int64_t group, bool last) { emit_all(iteration, packer_.skip(group), last); }

  /// A round of groups is complete. `last`: there is no other round.
  void flush(const Iteration& iteration, bool last) { emit_all(iteration, packer_.flush(), last); }

  /// All rounds are; another iteration begins.
  void restart() { packer_.finish_iteration(); }

  void end(const Iteration& iteration);

 private:
  void emit_all(const Iteration& iteration, std::vector<Packer::Batch> batches, bool last);
  void record(const BatchState& packed);
  void tell_observers(const BatchState& packed, const std::vector<Group::NamedColumn>& columns);
  size_t slot_of(const ColumnSpec& spec) const;

  RunState& state_;
  const PathState& path_;
  const bool is_main_;
  StageHost& maker_;
  const std::function<void(Packet)> emit_;
  const Readers& readers_;
  Packer packer_;
  std::map<int64_t, Credit> credits_;  // of groups that are not packed, by index
  int64_t sequence_ = 0;
};

}  // namespace sluice::engine
