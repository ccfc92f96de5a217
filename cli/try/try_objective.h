#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cli/try/columns_json.h"
#include "nodes/objectives/objective.h"

namespace sluice::cli {

/// A policy or value objective on columns given by hand, in double precision.
class TriedObjective {
 public:
  /// `object` is what the registry made for a component of `kind`.
  TriedObjective(const std::string& kind, const std::shared_ptr<const void>& object);

  /// The columns that it needs; log-probabilities, values and entropies carry a gradient. A column `mask` may be there beside
  /// them.
  std::vector<engine::ColumnSpec> reads() const;

  /// Loss, gradient and metrics as `rlhf-run try` prints them. Throws UserError when a column is missing.
  Json run(const ColumnsInput& input) const;

 private:
  using Tensors = std::map<std::string, at::Tensor>;  // [A] each

  nodes::ObjectiveResult compute(const Tensors& given, const ColumnsInput& input) const;

  std::shared_ptr<const nodes::Objective> policy_;  // one of the two
  std::shared_ptr<const nodes::ValueObjective> value_;
};

}  // namespace sluice::cli
