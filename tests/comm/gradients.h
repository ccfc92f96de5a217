#pragma once

#include <atomic>
#include <cmath>
#include <cstdint>
#include <future>
#include <memory>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "base/numbers/sum_tree.h"
#include "comm/transfers.h"
#include "engine/contract/world/gradient_group.h"
#include "engine/contract/world/world.h"

namespace sluice::comm {

using Floats = std::vector<float>;

/// Made-up gradients, the same for whoever asks: of floats so different in size that each order of adding them gives other bits.
struct MadeUpGradient {
  uint64_t seed = 0;
  int slots = 1;
  int64_t count = 0;

  float at(int slot, int64_t i) const {
    uint64_t bits = (seed * 1024 + static_cast<uint64_t>(slot) + 1) * 0x9E3779B97F4A7C15 + static_cast<uint64_t>(i);
    bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9;
    bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EB;
    return std::ldexp(static_cast<float>(bits >> 40) - 8388607.5F, static_cast<int>(bits % 32) - 40);
  }

  /// The sum over slots that are one subtree, by one thread.
  Floats sum(SlotRange range) const {
    std::vector<SlotRange> leaves;
    std::vector<Floats> values;
    for (int slot = range.first; slot < range.last; ++slot) {
      leaves.push_back({slot, slot + 1});
      auto& floats = values.emplace_back(static_cast<size_t>(count));
      for (int64_t i = 0; i < count; ++i) floats[static_cast<size_t>(i)] = at(slot, i);
    }
    for (const auto& [first, second] : tree_additions(slots, leaves))
      move_sum(values[static_cast<size_t>(first)].data(), values[static_cast<size_t>(second)].data(), count);
    return std::move(values.front());
  }

  Floats sum() const { return sum({0, slots}); }

  /// What a rank has of it.
  std::vector<Floats> parts_of(engine::World world) const {
    const int each = slots / world.size;
    std::vector<Floats> parts;
    for (const SlotRange range : subtrees_of(slots, {world.rank * each, (world.rank + 1) * each})) parts.push_back(sum(range));
    return parts;
  }
};

/// A sum that was begun, and is over when done() is ready.
class BegunSum {
 public:
  BegunSum(engine::GradientGroup& group, std::vector<Floats> parts) : parts_(std::move(parts)), done_(promise_->get_future()) {
    std::vector<float*> pointers;
    for (Floats& part : parts_) pointers.push_back(part.data());
    group.all_reduce(pointers, std::ssize(parts_.front()), [promise = promise_] { promise->set_value(); });
  }

  std::future<void>& done() { return done_; }
  const std::vector<Floats>& parts() const { return parts_; }

 private:
  std::vector<Floats> parts_;
  std::shared_ptr<std::promise<void>> promise_ = std::make_shared<std::promise<void>>();
  std::future<void> done_;
};

/// Ways that floats may take: out of each other's memory, over the connections, and out of memory of which some cannot be read.
enum class Way { kMemory, kNetwork, kBoth };

inline const char* name_of(Way way) { return way == Way::kMemory ? "ByMemory" : way == Way::kNetwork ? "ByNetwork" : "ByBoth"; }

inline Reach reach_of(Way way) {
  if (way == Way::kMemory) return {};
  if (way == Way::kNetwork) return {.read = {}};
  const auto tries = std::make_shared<std::atomic<int>>(0);
  return {.read = [tries](uint64_t process, uint64_t address, void* into, uint64_t size) {
    const bool is_a_look = size == sizeof(float);  // of who has the memory
    return (!is_a_look || (*tries)++ % 3 != 0) && read_memory(process, address, into, size);
  }};
}

/// Ranks as threads of this process; returns when all have returned.
template <class Rank>
void run_ranks(int size, const Rank& rank) {
  std::vector<std::jthread> threads;
  for (int i = 0; i < size; ++i) threads.emplace_back([&rank, i, size] { rank(engine::World{i, size}); });
}

}  // namespace sluice::comm
