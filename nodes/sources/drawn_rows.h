#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "data/dataset.h"
#include "engine/contract/node.h"
#include "engine/contract/state.h"
#include "nodes/sources/row_cursor.h"
#include "nodes/sources/row_source.h"

namespace sluice::nodes {

/// The rows of a source in a run: checked before it, then drawn one after the other.
class DrawnRows {
 public:
  /// `params`: of the source, with the members that all of them have. `fields`: what it reads of a row. Compressed files are
  /// unpacked in the run folder, outside of a run where RowFile says.
  template <class P>
  DrawnRows(const P& params, const std::vector<data::JsonlField>& fields, const engine::NodeResources& resources)
      : rows_({.paths = params.path,
               .weights = params.weights,
               .shuffle = params.shuffle,
               .epochs = params.epochs,
               .seed = resources.seed,
               .scratch = resources.run_folder.path},
              fields),
        check_(params.too_long),
        metrics_(resources.metrics) {}

  const data::Dataset& all() const { return rows_; }

  /// As RowCheck::run(), of the values of each row.
  void check(const std::function<std::optional<RowCheck::Fault>(const std::vector<Json>& values)>& fault_of);

  /// The values of the next row. Nothing when the data has ended.
  std::optional<std::vector<Json>> draw();
  uint64_t drawn() const { return cursor_.drawn(); }

  /// The values of the row at a position, which stays as it is. Nothing behind the end of the data.
  std::optional<std::vector<Json>> at(uint64_t position);

  /// At the begin of an iteration: the metrics of describe_dropped().
  void record() const { check_.record(metrics_); }

  /// As RowCursor.
  void save(engine::StateWriter& state) const { cursor_.save(rows_, state); }
  void load(const engine::StateReader& state) { cursor_.load(rows_, state); }

 private:
  data::Dataset rows_;
  RowCursor cursor_;
  RowCheck check_;
  engine::MetricsRecorder* metrics_;
};

}  // namespace sluice::nodes
