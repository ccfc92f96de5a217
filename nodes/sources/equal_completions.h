#pragma once

#include <cstdint>
#include <span>

#include "base/json/json.h"
#include "data/dataset.h"
#include "engine/plan/data_look.h"

namespace sluice::nodes {

/// Counts rows of which two completions are the same text: their scores and their gradients cancel out.
class EqualCompletions {
 public:
  /// Those of the row `id`; null where it has none.
  void look_at(std::span<const Json> completions, const data::Dataset& rows, data::Dataset::RowId id);

  /// Once all rows were looked at: one warning, with the first of them, where there are any.
  void warn(engine::DataLook& look) const;

 private:
  int64_t rows_ = 0, equal_ = 0;
  SourceSpan first_;
};

}  // namespace sluice::nodes
