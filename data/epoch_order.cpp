#include "data/epoch_order.h"

#include <limits>
#include <numeric>
#include <utility>

#include "base/numbers/random.h"

namespace sluice::data {
namespace {

// A group that no iteration has: the shuffle must not share its numbers with the sampling of an iteration.
constexpr uint32_t kShuffleStream = std::numeric_limits<uint32_t>::max();

// Fisher-Yates.
void shuffle(std::vector<uint32_t>& order, RandomStream random) {
  for (size_t left = order.size(); left > 1; --left) std::swap(order[left - 1], order[random.below(left)]);
}

}  // namespace

std::optional<size_t> EpochOrder::row_at(uint64_t position) {
  const uint64_t epoch = position / rows_;
  const auto index = static_cast<size_t>(position % rows_);
  if (epochs_ > 0 && epoch >= static_cast<uint64_t>(epochs_)) return std::nullopt;
  if (!shuffle_) return index;
  if (order_.empty() || shuffled_epoch_ != epoch) {
    order_.resize(rows_);
    std::iota(order_.begin(), order_.end(), 0u);
    shuffle(order_, RandomStream(seed_, epoch, kShuffleStream, source_));
    shuffled_epoch_ = epoch;
  }
  return order_[index];
}

}  // namespace sluice::data
