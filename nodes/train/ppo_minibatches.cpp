#include "nodes/train/ppo_minibatches.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "base/random.h"

namespace sluice::nodes {

namespace {

// Stands where a sampler's stream has its sample, which never gets this large: the two are independent.
constexpr uint32_t kDealing = std::numeric_limits<uint32_t>::max();

}  // namespace

std::vector<std::vector<size_t>> deal_groups(size_t groups, int64_t parts, uint64_t seed, int64_t iteration, int64_t epoch) {
  std::vector<size_t> order(groups);
  std::iota(order.begin(), order.end(), size_t{0});
  RandomStream random(seed, static_cast<uint64_t>(iteration), static_cast<uint32_t>(epoch), kDealing);
  for (size_t left = groups; left > 1; --left) std::swap(order[left - 1], order[random.below(left)]);  // Fisher-Yates

  const auto count = static_cast<size_t>(parts);
  std::vector<std::vector<size_t>> dealt;
  for (size_t part = 0; part < count; ++part) {
    const auto begin = order.begin() + static_cast<ptrdiff_t>(part * groups / count);
    const auto end = order.begin() + static_cast<ptrdiff_t>((part + 1) * groups / count);
    std::ranges::sort(dealt.emplace_back(begin, end));
  }
  return dealt;
}

std::vector<size_t> groups_within(std::span<const size_t> part, size_t first, size_t count) {
  std::vector<size_t> within;
  for (const size_t group : part) {
    if (group >= first && group < first + count) within.push_back(group - first);
  }
  return within;
}

}  // namespace sluice::nodes
