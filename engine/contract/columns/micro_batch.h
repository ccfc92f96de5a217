#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/contract/columns/column.h"
#include "engine/contract/columns/layout.h"
#include "engine/contract/columns/token_budget.h"

namespace sluice::engine {

/// Bytes of all columns that are alive, and their peak. Shared by all threads of a run.
class ByteMeter {
 public:
  void add(int64_t bytes);
  void remove(int64_t bytes) { live_.fetch_sub(bytes); }
  int64_t live() const { return live_.load(); }
  int64_t take_peak() { return peak_.exchange(live_.load()); }  // since the last call

 private:
  std::atomic<int64_t> live_{0};
  std::atomic<int64_t> peak_{0};
};

/// One group on its way into a micro-batch: what a source or a rollout node makes.
/// A source that feeds a rollout writes group columns only and leaves the layout with one group without samples.
struct Group {
  struct NamedColumn {
    ColumnSpec spec;
    ColumnData data;
  };

  int64_t iteration = 0;
  int64_t index = 0;  // within the iteration
  int slot = 0;       // of the run, which it is dealt out to
  Layout layout;      // exactly one group once it is complete
  std::vector<NamedColumn> columns;

  /// Entries to fill. The layout must be final for the column's extent.
  template <class T>
  std::span<T> write(const Column<T>& column) {
    const size_t count = column.extent == Extent::kGroup ? 1 : layout.count(column.extent);
    return add({column.spec(), ColumnData(dtype_of<T>(), count)}).template entries<T>();
  }

  template <class T>
  std::span<const T> read(const Column<T>& column) const {
    return find(column.spec()).template entries<T>();
  }

 private:
  ColumnData& add(NamedColumn column);
  const ColumnData& find(const ColumnSpec& spec) const;
};

/// The columns of a pipeline, each in a place of its own: an index into these, and into the slots of a BatchState.
using ColumnSpecs = std::vector<ColumnSpec>;

/// How many ordinary nodes must be done with a micro-batch: with each of its columns, and with its tokens.
struct Readers {
  std::vector<int> columns;  // by slot
  int tokens = 0;
};

/// Columns of one micro-batch by slot, shared by all branches of the graph up to the next filters. A slot is written by exactly
/// one node, and only nodes after it read it (the plan proves both), so slots need no lock: the graph's edges order the
/// accesses. The entries of a slot go when its last reader is done, the credit of the groups when the last reader of all is.
struct BatchState {
  struct Slot {
    ColumnData data;
    int64_t bytes = 0;
    std::atomic<int> readers_left{0};
  };

  /// `readers` outlives the micro-batch. `group_indices` [G] within the iteration; `credits` [G].
  BatchState(int64_t iteration_, int64_t id_, Layout layout_, std::vector<int64_t> group_indices_, std::vector<Credit> credits,
             const Readers& readers, ByteMeter& meter_);
  ~BatchState();

  void store(size_t slot, ColumnData data);
  void release_one_reader(size_t slot);
  void release_one_token_reader();

  /// The micro-batch of the groups for which `keep` [G] is not 0, with the columns in `slots_to_copy`, for `readers_behind`.
  /// Columns are shared, not copied, when all groups stay. Called by the filter while it is still one of the readers.
  std::shared_ptr<BatchState> thinned(std::span<const uint8_t> keep, const ColumnSpecs& specs,
                                      const std::vector<int>& slots_to_copy, const Readers& readers_behind) const;

  const int64_t iteration;
  const int64_t id;  // counts micro-batches of the iteration from 0
  const Layout layout;
  const std::vector<int64_t> group_indices;
  int64_t drawn_groups;  // that it had before any filter
  int slot = 0;          // of the run, of which all its groups are
  bool is_last = false;  // it is known that this rank's iteration has none after it
  std::vector<Slot> slots;
  ByteMeter& meter;

 private:
  const Readers& readers_;
  std::atomic<int> token_readers_left_;
  std::vector<Credit> credits_;
};

/// What a node may see of a micro-batch: the columns that its contract reads, and places for those that it writes.
/// A handle for the duration of `process`. To read an undeclared column or write one twice throws UserError (contract_breach.h).
class MicroBatch {
 public:
  /// Everything outlives it.
  MicroBatch(BatchState& state, const ColumnSpecs& specs, const std::vector<int>& reads, const std::vector<int>& writes)
      : state_(&state), specs_(&specs), reads_(&reads), writes_(&writes), written_(writes.size()) {}

  int64_t iteration() const { return state_->iteration; }
  int64_t id() const { return state_->id; }
  int slot() const { return state_->slot; }         // of the run: what it adds to gradients is added there
  bool is_last() const { return state_->is_last; }  // it is known that none of the iteration comes after it
  int64_t group_index(size_t group) const { return state_->group_indices[group]; }  // within the iteration
  const Layout& layout() const { return state_->layout; }
  size_t groups() const { return layout().groups(); }
  size_t samples() const { return layout().samples(); }
  size_t tokens() const { return layout().tokens(); }
  size_t actions() const { return layout().actions(); }
  std::vector<Range> actions_by_sample() const { return layout().actions_by_sample(); }
  std::vector<Range> tokens_by_sample() const { return layout().tokens_by_sample(); }

  template <class T>
  std::span<const T> read(const Column<T>& column) const {
    return read(column.name, dtype_of<T>(), column.extent).template entries<T>();
  }
  bool has(const ColumnSpec& spec) const;                 // declared as read by the node
  const ColumnSpec& column(std::string_view name) const;  // of a column that the node reads

  /// Entries to fill, zero at first.
  template <class T>
  std::span<T> write(const Column<T>& column) {
    return write(column.spec()).template entries<T>();
  }

  /// By name, for columns that parameters name.
  const ColumnData& read(const ColumnSpec& spec) const;
  const ColumnData& write(const ColumnSpec& spec);

  /// What the node wrote so far; for nodes that work over a whole iteration in two passes.
  template <class T>
  std::span<T> written(const Column<T>& column) {
    return written(column.spec()).template entries<T>();
  }
  const ColumnData& written(const ColumnSpec& spec) const;

  /// The group does not reach the nodes after this one, which must be a filter by its contract. It stays readable here.
  void drop_group(size_t group);

  /// For the engine.
  const std::vector<uint8_t>& dropped_groups() const { return dropped_; }  // empty: none; else one entry a group
  BatchState& state() const { return *state_; }
  const std::vector<ColumnData>& written_columns() const { return written_; }

 private:
  const ColumnData& read(std::string_view name, DType dtype, Extent extent) const;

  BatchState* state_;
  const ColumnSpecs* specs_;
  const std::vector<int>* reads_;   // slots
  const std::vector<int>* writes_;  // slots
  std::vector<ColumnData> written_;
  std::vector<uint8_t> dropped_;
};

}  // namespace sluice::engine
