#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "engine/contract/columns/micro_batch.h"

namespace sluice::nodes {

/// Column mask of a micro-batch: the weight of each action in losses and statistics. Without the column each action counts 1. A
/// node that uses it declares `c.reads_if_written(columns::kMask)`. A view: valid as long as the micro-batch.
class ActionMask {
 public:
  explicit ActionMask(const engine::MicroBatch& batch);

  std::span<const float> weights() const { return weights_; }  // [A]; empty where there is no mask
  double weight(size_t action) const { return weights_.empty() ? 1.0 : weights_[action]; }
  bool keeps(size_t action) const { return weight(action) != 0; }

  /// How many actions of a sample it keeps, whatever they weigh.
  size_t kept(engine::Range actions) const;

  /// The last one that it keeps; nothing if it keeps none.
  std::optional<size_t> last_kept(engine::Range actions) const;

  /// Whether the sample of these actions has a part in the statistics of its group: unless it has actions and the mask is 0 on
  /// all of them. A response without any action counts: its score is as real as that of others.
  bool counts(engine::Range actions) const { return actions.size() == 0 || kept(actions) > 0; }

  /// The weights of all actions together.
  double total(size_t actions) const;

 private:
  std::span<const float> weights_;
};

/// Which samples [S] have a part in statistics, as ActionMask::counts() says: all, where no node writes a mask.
std::vector<bool> counted_samples(const engine::MicroBatch& batch);

/// Zero where the mask is. values[A].
void zero_masked(std::span<float> values, const ActionMask& mask);

}  // namespace sluice::nodes
