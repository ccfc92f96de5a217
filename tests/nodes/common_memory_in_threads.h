#pragma once

#include <barrier>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "engine/contract/common_memory.h"

namespace sluice::nodes::testing {

/// Common memory of ranks of which each has a thread.
class CommonMemoryInThreads {
 public:
  explicit CommonMemoryInThreads(int ranks) : meeting_(ranks) {
    for (int rank = 0; rank < ranks; ++rank) ranks_.push_back(std::make_unique<OfRank>(*this));
  }

  engine::CommonMemory* rank(int rank) { return ranks_[static_cast<size_t>(rank)].get(); }

  /// Calls work(rank) for all, each on its thread.
  void on_all(const std::function<void(int rank)>& work) {
    std::vector<std::thread> threads;
    for (int rank = 0; rank < static_cast<int>(ranks_.size()); ++rank) threads.emplace_back(work, rank);
    for (std::thread& thread : threads) thread.join();
  }

 private:
  class OfRank final : public engine::CommonMemory {
   public:
    explicit OfRank(CommonMemoryInThreads& all) : all_(all) {}

    std::shared_ptr<std::byte> get(const std::string& name, size_t bytes) override {
      const std::lock_guard lock(all_.mutex_);
      std::shared_ptr<std::byte>& memory = all_.memory_[name];
      if (!memory) memory = all_.own_.get(name, bytes);
      return memory;
    }
    void meet() override { all_.meeting_.arrive_and_wait(); }

   private:
    CommonMemoryInThreads& all_;
  };

  std::barrier<> meeting_;
  std::mutex mutex_;  // guards what follows
  engine::OwnMemory own_;
  std::map<std::string, std::shared_ptr<std::byte>> memory_;
  std::vector<std::unique_ptr<OfRank>> ranks_;
};

}  // namespace sluice::nodes::testing
