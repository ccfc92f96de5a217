#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/numbers/float_range.h"
#include "engine/contract/world/common_memory.h"
#include "engine/contract/world/gradient_group.h"
#include "models/train/adamw.h"
#include "nodes/models/gradients/gradient_exchange.h"
#include "nodes/models/gradients/weight_hooks.h"

namespace sluice::nodes {

/// Gradients that ranks add to sums which they have in common (models/train/fixed_point_sums.h): each as soon as a backward is
/// done with a weight, so no rank holds the gradients of more than a layer. Words alone go between the ranks that have the sums
/// in common: that all have added what they have, what the norms of their parts are, and that all have made their step.
///
/// Where the ranks are several groups that have memory in common (engine::SharingRanks), each group has sums of its own. What
/// others own of them goes to those in whole numbers, a bucket after the other, so that a sum has the bits that it has in one
/// group; and what a rank has stepped comes to each other group once.
///
/// Ownership: uses the optimizer and the group, which outlive it. Belongs to the thread that trains; what the ranks tell each
/// other comes on the thread of the group. Failure: as GradientGroup and FixedPointSums.
class CommonGradients final : public GradientExchange {
 public:
  /// group: null: this rank is alone. Of an optimizer with common sums, which `sharing` has in common.
  CommonGradients(models::AdamW& optimizer, engine::GradientGroup* group, int ranks, engine::SharingRanks sharing);
  ~CommonGradients() override;

  void add_up(const Done& done) override;
  void bring_weights(const Done& done) override;

  /// The most that gradients took here on their way to the sums, in the first step, and sums on their way here. From any thread.
  int64_t passing_bytes() const {
    return passing_bytes_.load(std::memory_order_relaxed) + static_cast<int64_t>(given_.size() * sizeof(int64_t));
  }

  /// `done`, on some thread: all ranks have called this as often.
  void wait_for_all(const Done& done);

 private:
  using Stretches = std::vector<engine::GradientGroup::Stretch>;

  void give(size_t weight);
  void gather_squares(const Done& done);
  FloatRange owned(size_t bucket, int rank) const;
  template <class Work>
  void for_each_counterpart(const Work& work) const;
  void exchange(Stretches out, Stretches in, const Done& done);
  void join_sums(size_t bucket, const Done& done);
  void add_given(size_t bucket);
  void spread_weights(size_t bucket, const Done& done);

  models::AdamW& optimizer_;
  engine::GradientGroup* const group_;
  const int ranks_;
  const engine::SharingRanks sharing_;
  std::vector<FloatRange> ranges_;  // by weight
  std::vector<float> words_;        // one a rank, which say nothing
  std::vector<int64_t> given_;      // sums of what this rank owns of a bucket, of each other group
  std::atomic<int> waiting_ = 0;    // calls of the group that come still
  std::atomic<int64_t> passing_bytes_ = 0;
  bool has_stepped_ = false;
  const WeightHooks hooks_;  // last: it calls back
};

}  // namespace sluice::nodes
