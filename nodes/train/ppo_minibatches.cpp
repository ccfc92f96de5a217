#include "nodes/train/ppo_minibatches.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

#include "base/numbers/random.h"

namespace sluice::nodes {

namespace {

// Stands where a sampler's stream has its sample, which never gets this large, less the slot: the two are independent.
constexpr uint32_t kDealing = std::numeric_limits<uint32_t>::max();

// Those of `part` (ascending) that lie in [first, first + count), counted from `first`.
std::vector<size_t> groups_within(std::span<const size_t> part, size_t first, size_t count) {
  std::vector<size_t> within;
  for (const size_t group : part) {
    if (group >= first && group < first + count) within.push_back(group - first);
  }
  return within;
}

}  // namespace

std::vector<std::vector<size_t>> deal_groups(size_t groups, const Deal& deal, int slot) {
  std::vector<size_t> order(groups);
  std::iota(order.begin(), order.end(), size_t{0});
  RandomStream random(deal.seed, static_cast<uint64_t>(deal.iteration), static_cast<uint32_t>(deal.epoch),
                      kDealing - static_cast<uint32_t>(slot));
  for (size_t left = groups; left > 1; --left) std::swap(order[left - 1], order[random.below(left)]);  // Fisher-Yates

  const auto count = static_cast<size_t>(deal.parts);
  std::vector<std::vector<size_t>> dealt(count);
  for (size_t part = 0; part < count; ++part) {
    const auto begin = order.begin() + static_cast<ptrdiff_t>(part * groups / count);
    const auto end = order.begin() + static_cast<ptrdiff_t>((part + 1) * groups / count);
    std::vector<size_t>& set = dealt[(part + static_cast<size_t>(slot)) % count];
    set.assign(begin, end);
    std::ranges::sort(set);
  }
  return dealt;
}

ChosenGroups groups_of_part(std::span<const DealtBatch> batches, const Deal& deal, int64_t part) {
  std::map<int, size_t> groups;  // by slot
  for (const DealtBatch& batch : batches) groups[batch.slot] += batch.groups;
  std::map<int, std::vector<size_t>> chosen;
  for (const auto& [slot, count] : groups) chosen[slot] = deal_groups(count, deal, slot)[static_cast<size_t>(part)];
  std::map<int, size_t> first;  // group of the next micro-batch
  ChosenGroups of_batches;
  for (const DealtBatch& batch : batches) {
    of_batches.push_back(groups_within(chosen[batch.slot], first[batch.slot], batch.groups));
    first[batch.slot] += batch.groups;
  }
  return of_batches;
}

}  // namespace sluice::nodes
