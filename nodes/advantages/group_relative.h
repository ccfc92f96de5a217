#pragma once

#include <array>
#include <span>
#include <utility>
#include <vector>

#include "engine/contract/contract.h"
#include "engine/contract/node.h"
#include "nodes/advantages/rewards.h"

namespace sluice::nodes {

/// The advantage of a sample that is alone in its group: nothing to compare it with.
enum class LoneSample {
  kZero,   // 0: it teaches nothing (TRL, NeMo-RL, SkyRL's rloo)
  kScore,  // its reward, as if compared with 0 (verl, SkyRL)
};

constexpr auto enum_names(LoneSample) {
  return std::array{std::pair{LoneSample::kZero, "zero"}, std::pair{LoneSample::kScore, "score"}};
}

/// The samples of one group that count (ActionMask::counts), at least one.
struct RewardedGroup {
  int64_t index = 0;            // within the iteration
  size_t samples = 0;           // with those that do not count
  std::vector<double> rewards;  // [n]
  std::vector<double> actions;  // [n] how many, without masked ones
};

/// An advantage that compares the samples of a group with each other: one value a sample, repeated on its actions.
///
/// The reward of a sample is its score, or the sum of its token_rewards where some node before writes them: see rewards.h. A
/// sample all of whose actions are masked does not count and may even have NaN for a score; one without actions counts. An action
/// whose mask is 0 gets 0, any other the sample's value whatever it weighs: the loss weighs it. A reward that counts and is not
/// finite is a UserError that names column, group and sample.
class GroupRelative : public engine::Node {
 public:
  explicit GroupRelative(engine::NodeResources& resources) : metrics_(*resources.metrics) {}

  void process(engine::MicroBatch& batch) override;

 protected:
  /// [n], in the order of `group`.
  virtual std::vector<double> advantages_of(const RewardedGroup& group) const = 0;

  /// The groups of a micro-batch of which some sample counts, and which samples those are.
  struct Counted {
    RewardedGroup group;
    std::vector<size_t> samples;  // [n] of the micro-batch
  };
  static std::vector<Counted> counted_groups(const engine::MicroBatch& batch);

  void record(const RewardedGroup& group, bool all_zero);

  engine::MetricsRecorder& metrics_;
};

/// Declares the key lone_sample. Unless it gives the score, a sample needs another one.
template <class P>
void describe_lone_sample(engine::Contract<P>& c) {
  c.param("lone_sample", &P::lone_sample).doc("of a sample without company: zero, or its score");
  c.needs(
      [](const P& params, engine::NodeNeeds& needs) { needs.least_samples = params.lone_sample == LoneSample::kZero ? 2 : 1; });
}

/// Declares what it writes and records; what it reads is for the node to declare (describe_rewards).
template <class P>
void describe_group_relative(engine::Contract<P>& c) {
  c.writes(columns::kAdvantages);
  c.metric("advantage/group_std_mean", engine::Metric::kMean, "mean over the groups of the standard deviation of their rewards");
  c.metric("advantage/zero_advantages", engine::Metric::kMean,
           "share of the groups all of whose advantages are 0: they teach nothing");
}

}  // namespace sluice::nodes
