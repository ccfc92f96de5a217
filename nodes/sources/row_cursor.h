#pragma once

#include <optional>

#include "data/dataset.h"
#include "engine/contract/state.h"

namespace sluice::nodes {

/// Where a source of rows is: which row is next depends on how many were drawn, whatever iteration they were for. A filter may
/// have an iteration draw any number of them.
class RowCursor {
 public:
  /// The next row of `rows`, which is drawn by that. Nothing when the data has ended.
  std::optional<data::Dataset::RowId> draw(data::Dataset& rows);

  uint64_t drawn() const { return drawn_; }

  void save(const data::Dataset& rows, engine::StateWriter& state) const;

  /// Throws UserError when the state was saved with other rows, or in another order.
  void load(const data::Dataset& rows, const engine::StateReader& state);

 private:
  uint64_t drawn_ = 0;
};

}  // namespace sluice::nodes
