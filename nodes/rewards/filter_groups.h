#pragma once

#include <optional>

#include "engine/contract/contract.h"
#include "engine/contract/node.h"

namespace sluice::nodes {

/// Keeps the groups that teach something, and can have the others replaced (dynamic sampling: Yu et al. 2025, "DAPO",
/// section 3.2).
///
///   [nodes.useful]
///   type = "filter_groups"
///   inputs = ["score"]
///   drop_equal_scores = true    # groups all of whose samples have the same score: their advantages would be 0
///   least_mean_score = 0.1      # drops groups that are too hard; unset: none
///   most_mean_score = 0.9       # and those that are too easy
///   most_draws = 3              # replaces what it drops: draws at most 3 x groups_per_iteration groups; 1: replaces nothing
///   oversample = 1.25           # draws so many times the groups that are missing, in each round
///
/// Reads score[S], and mask[A] where a node writes it: samples that are masked do not count, and a group of which all are goes.
/// The groups that it drops do not reach the nodes after it. With most_draws above 1 the iteration goes on until
/// groups_per_iteration groups were kept; of those that pass, the first ones in the order of the source are kept, whatever the
/// timing was.
struct FilterGroupsParams {
  bool drop_equal_scores = true;
  std::optional<double> least_mean_score;
  std::optional<double> most_mean_score;
  int64_t most_draws = 1;
  double oversample = 1.0;
};

class FilterGroups final : public engine::Node {
 public:
  static void describe(engine::Contract<FilterGroupsParams>& contract);

  FilterGroups(const FilterGroupsParams& params, engine::NodeResources& resources)
      : params_(params), node_(resources.node), metrics_(*resources.metrics) {}

  /// Throws UserError where equal scores are to be dropped and every group is a single sample: nothing could pass.
  void process(engine::MicroBatch& batch) override;

 private:
  bool passes(std::span<const float> scores) const;

  const FilterGroupsParams params_;
  std::string node_;
  engine::MetricsRecorder& metrics_;
};

}  // namespace sluice::nodes
