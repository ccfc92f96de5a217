#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/float_range.h"
#include "engine/contract/gradient_group.h"
#include "models/train/adamw.h"
#include "nodes/models/gradient_exchange.h"
#include "nodes/models/weight_hooks.h"

namespace sluice::nodes {

/// Gradients that ranks add to sums which they have in common (models/train/fixed_point_sums.h): each as soon as a backward is done
/// with a weight, so no rank holds the gradients of more than a layer. Words alone go between the ranks: that all have added what
/// they have, what the norms of their parts are, and that all have made their step.
///
/// Ownership: uses the optimizer and the group, which outlive it. Belongs to the thread that trains; what the ranks tell each other
/// comes on the thread of the group. Failure: as GradientGroup and FixedPointSums.
class CommonGradients final : public GradientExchange {
 public:
  /// group: null: this rank is alone. Of an optimizer with common sums.
  CommonGradients(models::AdamW& optimizer, engine::GradientGroup* group, int ranks);
  ~CommonGradients() override;

  void add_up(const Done& done) override;
  void bring_weights(const Done& done) override;

  /// The most that gradients took here on their way to the sums, in the first step. From any thread.
  int64_t passing_bytes() const { return passing_bytes_.load(std::memory_order_relaxed); }

  /// `done`, on some thread: all ranks have called this as often.
  void wait_for_all(const Done& done);

 private:
  void give(size_t weight);
  void gather_squares(const Done& done);

  models::AdamW& optimizer_;
  engine::GradientGroup* const group_;
  const int ranks_;
  std::vector<FloatRange> ranges_;  // by weight
  std::vector<float> words_;        // one a rank, which say nothing
  std::atomic<int> waiting_ = 0;    // calls of the group that come still
  std::atomic<int64_t> passing_bytes_ = 0;
  bool has_stepped_ = false;
  const WeightHooks hooks_;  // last: it calls back
};

}  // namespace sluice::nodes
