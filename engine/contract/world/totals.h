#pragma once

#include <string>
#include <vector>

#include "engine/contract/world/world.h"

namespace sluice::engine {

/// Numbers that a node adds up over all ranks of a run, such as the actions that a loss is divided by. A contract declares their
/// names; see Contract::total(). What a node adds is combined at fixed points: after each gather() of a barrier, and before
/// end_iteration(). From then to the next point it can be read.
///
/// Sums are exact: they do not depend on the order, on micro-batches or on the number of ranks. Used by the node's executor only.
/// To name what is not declared throws UserError.
class Totals {
 public:
  /// Takes every name: for a node alone, outside a pipeline.
  Totals() = default;

  explicit Totals(const std::vector<std::string>& declared);

  /// What this rank adds to `name`, from one point to the next.
  ExactMoments& mine(const std::string& name);

  /// Likewise a list of whole numbers, which are added place by place: such as the tokens that each expert got. It may grow.
  std::vector<int64_t>& my_counts(const std::string& name);

  /// Adds one number of weight 1.
  void add(const std::string& name, double number) { mine(name).add(number); }

  /// Of all ranks, at the last point: what was added since the one before it.
  const ExactMoments& of_all(const std::string& name) const;
  double sum_of_all(const std::string& name) const { return of_all(name).sum.value(); }
  const std::vector<int64_t>& counts_of_all(const std::string& name) const;

  bool empty() const { return mine_.empty(); }

  /// For the engine: what this rank has added since the last point; and what all have. combine_alone(): of a rank that is alone.
  Contribution contribution();
  void set_combined(Contribution of_all) { all_ = std::move(of_all); }
  void combine_alone() { set_combined(contribution()); }

 private:
  Part& my_part(const std::string& name);
  const Part& part_of_all(const std::string& name) const;

  bool takes_all_ = true;
  Contribution mine_, all_;
};

}  // namespace sluice::engine
