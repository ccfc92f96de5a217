#pragma once

#include <memory>
#include <vector>

#include "cli/try/columns_json.h"
#include "nodes/objectives/preference/preference_objective.h"

namespace sluice::cli {

/// A preference objective on columns given by hand, in double precision: pairs are made as train_dpo makes them.
class TriedPreference {
 public:
  explicit TriedPreference(std::shared_ptr<const nodes::PreferenceObjective> objective) : objective_(std::move(objective)) {}

  /// The columns that it needs; the first carries the gradient. Column mask is read too where it is given.
  std::vector<engine::ColumnSpec> reads() const;

  /// Loss, gradient and metrics as `rlhf-run try` prints them. Throws UserError when a column is missing.
  Json run(const ColumnsInput& input) const;

 private:
  std::shared_ptr<const nodes::PreferenceObjective> objective_;
};

}  // namespace sluice::cli
