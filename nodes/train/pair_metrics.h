#pragma once

#include <string>
#include <vector>

#include "engine/contract/contract.h"
#include "engine/contract/node.h"
#include "nodes/train/optimizer_step.h"

namespace sluice::nodes {

/// Pairs of an iteration (groups, where a group has several), over all ranks: by their number the sum of their gradients is
/// divided.
inline constexpr const char* kPairTotal = "pairs";

/// Declares what is measured wherever a model learns from pairs of a better and a worse sample. `group`: of the model that
/// learns; `accuracy`: what the share of pairs in the right order means here.
template <class P>
void describe_pair_metrics(engine::Contract<P>& c, const std::string& group, const std::string& accuracy) {
  c.total(kPairTotal);
  c.metric(group + "/loss", engine::Metric::kMean,
           "mean loss of a pair; where groups have several, of a group: the mean of its pairs");
  c.metric("preference/accuracy", engine::Metric::kMean, accuracy);
  c.metric("preference/reward_margin", engine::Metric::kMean,
           "mean of the chosen sample's reward minus that of the rejected one");
  c.metric("preference/chosen_reward_mean", engine::Metric::kMean, "mean reward of the chosen samples");
  c.metric("preference/rejected_reward_mean", engine::Metric::kMean, "mean reward of the rejected samples");
  c.metric("preference/pairs", engine::Metric::kSum, "pairs of the iteration");
  c.metric("preference/groups_without_pair", engine::Metric::kSum, "groups that have no two samples with different scores");
  describe_gradient_norm(c, group);
}

/// How much a mean over pairs counts each of so many of their samples.
inline std::vector<double> counted_of_pairs(size_t samples) { return std::vector<double>(samples, 0.5); }

/// Records how many of a micro-batch's groups gave a pair. Returns the number of pairs.
inline double record_pairs(engine::MetricsRecorder& metrics, size_t pairs, size_t groups) {
  metrics.sum("preference/pairs", static_cast<double>(pairs));
  metrics.sum("preference/groups_without_pair", static_cast<double>(groups - pairs));
  return static_cast<double>(pairs);
}

}  // namespace sluice::nodes
