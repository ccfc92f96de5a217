#pragma once

#include <ATen/core/Tensor.h>

#include <barrier>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "models/layers/segment.h"

namespace sluice::models::testing {

/// The ranks of a pass as threads of this process, which copy from each other.
class SegmentsInThreads {
 public:
  explicit SegmentsInThreads(int ranks, int ring = 1) : ring_(ring), given_(static_cast<size_t>(ranks)), all_(ranks) {
    for (int place = 0; place < ranks; ++place) exchanges_.push_back(std::make_unique<Exchange>(*this, place));
  }

  int ranks() const { return static_cast<int>(given_.size()); }

  /// Calls `work` for each place, at once, with its segment of a pass of so many tokens.
  void on_all(int64_t tokens, const std::function<void(const Segment& segment)>& work) {
    std::vector<std::jthread> threads;
    for (int place = 0; place < ranks(); ++place) {
      const Segment segment{.tokens = tokens,
                            .place = place,
                            .ranks = ranks(),
                            .ring = ring_,
                            .exchange = exchanges_[static_cast<size_t>(place)].get()};
      threads.emplace_back([&work, segment] { work(segment); });
    }
  }

 private:
  class Exchange final : public SegmentExchange {
   public:
    Exchange(SegmentsInThreads& all, int place) : all_(all), place_(static_cast<size_t>(place)) {}

    void exchange(std::span<const Tensors> to, std::span<const Tensors> from) override {
      all_.given_[place_] = to;
      all_.all_.arrive_and_wait();
      for (size_t place = 0; place < from.size(); ++place) {
        if (place == place_) continue;
        for (size_t i = 0; i < from[place].size(); ++i) from[place][i].copy_(all_.given_[place][place_][i]);
      }
      all_.all_.arrive_and_wait();
    }

   private:
    SegmentsInThreads& all_;
    const size_t place_;
  };

  const int ring_;
  std::vector<std::span<const SegmentExchange::Tensors>> given_;  // by place
  std::barrier<> all_;
  std::vector<std::unique_ptr<Exchange>> exchanges_;
};

}  // namespace sluice::models::testing
