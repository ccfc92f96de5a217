#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "engine/contract/columns/column.h"
#include "engine/contract/columns/layout.h"

namespace sluice::engine {

/// One piece of work of one node on one executor, as it ended.
struct Slice {
  int executor = 0;  // index into Plan::executors
  int node = 0;      // index into Plan::nodes
  int64_t iteration = 0;
  int64_t micro_batch = -1;   // -1: none (a step of the rollout, the end of an iteration)
  int64_t tokens = 0;         // of the micro-batch, or of all that a barrier collected; of a step: sampled
  int64_t prompt_tokens = 0;  // of a step: read
  int64_t groups = 0;         // of a source's step: taken
  bool ends_iteration = false;
  int64_t begin_ns = 0;  // on the run's clock
  int64_t end_ns = 0;
};

/// A point that all ranks came to, as it was on this one: where the node had what it adds, and where it went on with what all
/// have added.
struct Meeting {
  int executor = 0;  // index into Plan::executors
  int node = 0;      // index into Plan::nodes
  int64_t iteration = 0;
  int64_t number = 0;   // of the node's in this iteration, the same on all ranks
  int64_t came_ns = 0;  // on the run's clock
  int64_t went_on_ns = 0;
};

/// Columns of a micro-batch that are complete: those of the source and the rollout, or those of a node after them. Nobody
/// changes them any more; to be read during the call.
struct WrittenColumns {
  int64_t iteration = 0;
  int64_t micro_batch = 0;
  const Layout& layout;
  const std::vector<int64_t>& group_indices;  // [G] within the iteration
  std::vector<std::pair<const ColumnSpec*, const ColumnData*>> columns = {};

  const ColumnData* find(const ColumnSpec& spec) const {
    for (const auto& [of, data] : columns) {
      if (*of == spec) return data;
    }
    return nullptr;
  }
};

/// Sees every piece of work of a run: the trace, cost models, profilers, whoever shows samples. Called by the thread that works,
/// so it must be quick; calls for one executor never overlap, those for several may. Does not throw.
class WorkObserver {
 public:
  virtual ~WorkObserver() = default;

  // Of the main path alone: groups that were packed into a micro-batch, on the source's executor, and columns, on the executor of
  // who wrote them.
  virtual void packed(int64_t /*iteration*/, const Layout&) {}
  virtual void wrote(const WrittenColumns&) {}

  virtual void began(int /*executor*/, int /*node*/) {}
  virtual void ended(const Slice&) {}     // of work that is worth telling
  virtual void left(int /*executor*/) {}  // after every began()
  virtual void met(const Meeting&) {}     // of several ranks, within a piece of work
};

}  // namespace sluice::engine
