#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/contract/columns/micro_batch.h"
#include "engine/schedule/stages/stage_host.h"
#include "engine/schedule/state/run_state.h"

namespace sluice::engine {

/// Which groups leave a node that drops some, and what is counted of it. Of a filter that draws again for what it drops
/// (most_draws) each slot has a quota: of those that pass, the first ones in the order of their index are the iteration's,
/// whatever came when, and the others are dropped too. Belongs to the node's runner, and is used by its executor only.
class GroupFilter {
 public:
  GroupFilter(RunState& state, StageHost& host);

  /// By group of the micro-batch: whether it stays.
  std::vector<uint8_t> choose(const MicroBatch& batch);

  /// The micro-batch with these groups is made: whoever draws again is told.
  void tell(const BatchState& batch, const std::vector<uint8_t>& keep);

  /// Likewise, of one that had no groups any more when it came.
  void tell_of_empty(const BatchState& batch);

  /// At the end of an iteration. Every group that arrived was kept, dropped or over the quota; what the quotas of this rank's
  /// slots lack is told as well.
  void record();

 private:
  bool has_quota() const { return !quota_.empty(); }
  int64_t room_for(const MicroBatch& batch) const;
  void record_dropped(const Layout& layout, const std::vector<uint8_t>& keep);

  RunState& state_;
  StageHost& host_;
  PathState& path_;
  std::vector<int64_t> quota_;    // groups that are wanted, by slot of the run; empty: all that pass
  std::vector<int64_t> kept_of_;  // likewise, that were kept in this iteration
  int64_t kept_ = 0, dropped_ = 0, surplus_ = 0;
};

}  // namespace sluice::engine
