#include "nodes/objectives/action_draws.h"

#include <ATen/ops/tensor.h>

#include <algorithm>
#include <vector>

#include "base/numbers/random.h"

namespace sluice::nodes {

namespace {

// Stands in the iteration's upper half, which is 0 in the names of all other streams.
constexpr int kEpochBits = 32;

RandomStream stream_of(const ActionDraws& draws, int64_t group, size_t sample) {
  const uint64_t epoch = (static_cast<uint64_t>(draws.epoch) + 1) << kEpochBits;
  return {draws.seed, epoch | static_cast<uint32_t>(draws.iteration), static_cast<uint32_t>(group),
          static_cast<uint32_t>(sample)};
}

}  // namespace

at::Tensor draws_of(const ActionDraws& draws, const engine::Layout& layout, const std::function<int64_t(size_t)>& group_index,
                    std::span<const size_t> chosen) {
  std::vector<int64_t> bits;
  for (const size_t sample : chosen) {
    const auto behind = std::ranges::upper_bound(layout.group_offsets, static_cast<int64_t>(sample));
    const auto group = static_cast<size_t>(behind - layout.group_offsets.begin()) - 1;
    RandomStream stream = stream_of(draws, group_index(group), sample - static_cast<size_t>(layout.group_offsets[group]));
    const int64_t actions = layout.action_offsets[sample + 1] - layout.action_offsets[sample];
    for (int64_t i = 0; i < actions; ++i) bits.push_back(stream.next_bits());
  }
  return at::tensor(bits, at::kLong);
}

}  // namespace sluice::nodes
