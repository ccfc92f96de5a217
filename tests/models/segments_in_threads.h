#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "models/layers/segment.h"

namespace sluice::models::testing {

/// The ranks of a pass as threads of this process, which copy from each other.
class SegmentsInThreads {
 public:
  explicit SegmentsInThreads(int ranks, int ring = 1, int expert_ranks = 1) : ring_(ring), expert_ranks_(expert_ranks) {
    for (int place = 0; place < ranks; ++place) exchanges_.push_back(std::make_unique<Exchange>(*this, place));
  }

  int ranks() const { return static_cast<int>(exchanges_.size()); }

  /// Calls `work` for each place, at once, with its segment of a pass of so many tokens.
  void on_all(int64_t tokens, const std::function<void(const Segment& segment)>& work) {
    std::vector<std::jthread> threads;
    for (int place = 0; place < ranks(); ++place) {
      const Segment segment{.tokens = tokens,
                            .place = place,
                            .ranks = ranks(),
                            .ring = ring_,
                            .expert_ranks = expert_ranks_,
                            .exchange = exchanges_[static_cast<size_t>(place)].get()};
      threads.emplace_back([&work, segment] { work(segment); });
    }
  }

 private:
  // What a place gives others waits for them: those that have nothing for each other do not meet.
  class Exchange final : public SegmentExchange {
   public:
    Exchange(SegmentsInThreads& all, int place) : all_(all), place_(static_cast<size_t>(place)) {}

    void exchange(std::span<const Tensors> to, std::span<const Tensors> from) override {
      for (size_t place = 0; place < to.size(); ++place)
        if (place != place_ && has_numbers(to[place])) all_.give(place_, place, to[place]);
      for (size_t place = 0; place < from.size(); ++place) {
        if (place == place_ || !has_numbers(from[place])) continue;
        const Tensors given = all_.take(place, place_);
        for (size_t i = 0; i < from[place].size(); ++i) from[place][i].copy_(given.at(i));
      }
    }

   private:
    static bool has_numbers(const Tensors& tensors) {
      return std::ranges::any_of(tensors, [](const at::Tensor& tensor) { return tensor.numel() > 0; });
    }

    SegmentsInThreads& all_;
    const size_t place_;
  };

  // In no tensor's memory, as between processes.
  static at::Tensor copy_of(const at::Tensor& tensor) {
    const std::shared_ptr<char[]> memory(new char[std::max<size_t>(1, tensor.nbytes())]);
    at::Tensor copy = at::from_blob(
        memory.get(), tensor.sizes(), [memory](void*) {}, tensor.options().requires_grad(false));
    return copy.copy_(tensor.detach());
  }

  using Way = std::pair<size_t, size_t>;  // from a place to another

  void give(size_t from, size_t to, const SegmentExchange::Tensors& tensors) {
    SegmentExchange::Tensors copies;
    for (const at::Tensor& tensor : tensors) copies.push_back(copy_of(tensor));
    const std::lock_guard lock(mutex_);
    on_their_way_[{from, to}].push_back(std::move(copies));
    changed_.notify_all();
  }

  SegmentExchange::Tensors take(size_t from, size_t to) {
    std::unique_lock lock(mutex_);
    std::deque<SegmentExchange::Tensors>& given = on_their_way_[{from, to}];
    changed_.wait(lock, [&] { return !given.empty(); });
    SegmentExchange::Tensors first = std::move(given.front());
    given.pop_front();
    return first;
  }

  const int ring_, expert_ranks_;
  std::mutex mutex_;  // guards what is on its way
  std::condition_variable changed_;
  std::map<Way, std::deque<SegmentExchange::Tensors>> on_their_way_;
  std::vector<std::unique_ptr<Exchange>> exchanges_;
};

}  // namespace sluice::models::testing
