#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cli/columns_json.h"
#include "nodes/objectives/objective.h"

namespace sluice::cli {

/// A policy or value objective on columns given by hand, in double precision.
class TriedObjective {
 public:
  /// `object` is what the registry made for a component of `kind`.
  TriedObjective(const std::string& kind, const std::shared_ptr<const void>& object);

  /// The columns that it needs; the first carries the gradient.
  std::vector<engine::ColumnSpec> reads() const;

  /// Loss, gradient and metrics as `rlhf-run try` prints them. Throws UserError when a column is missing.
  Json run(const ColumnsInput& input) const;

 private:
  std::shared_ptr<const nodes::Objective> policy_;  // one of the two
  std::shared_ptr<const nodes::ValueObjective> value_;
};

}  // namespace sluice::cli
