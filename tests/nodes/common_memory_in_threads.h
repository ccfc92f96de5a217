#pragma once

#include <barrier>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "engine/contract/world/common_memory.h"

namespace sluice::nodes::testing {

/// Common memory of ranks of which each has a thread, in groups of the same size.
class CommonMemoryInThreads {
 public:
  explicit CommonMemoryInThreads(int ranks, int groups = 1) {
    for (int group = 0; group < groups; ++group) groups_.push_back(std::make_unique<Group>(ranks / groups));
    for (int rank = 0; rank < ranks; ++rank) ranks_.push_back(std::make_unique<OfRank>(*this, rank));
  }

  engine::CommonMemory* rank(int rank) { return ranks_[static_cast<size_t>(rank)].get(); }

  /// Calls work(rank) for all, each on its thread.
  void on_all(const std::function<void(int rank)>& work) {
    std::vector<std::thread> threads;
    for (int rank = 0; rank < static_cast<int>(ranks_.size()); ++rank) threads.emplace_back(work, rank);
    for (std::thread& thread : threads) thread.join();
  }

 private:
  struct Group {
    explicit Group(int ranks) : size(ranks), meeting(ranks) {}

    const int size;
    std::barrier<> meeting;
    std::mutex mutex;  // guards what follows
    engine::OwnMemory own;
    std::map<std::string, std::shared_ptr<std::byte>> memory;
  };

  class OfRank final : public engine::CommonMemory {
   public:
    OfRank(CommonMemoryInThreads& all, int rank) {
      const int count = all.groups_.front()->size;
      ranks_ = {.place = rank % count, .members = {}, .group = rank / count, .counterparts = {}};
      for (int place = 0; place < count; ++place) ranks_.members.push_back(ranks_.group * count + place);
      for (int group = 0; group < std::ssize(all.groups_); ++group) ranks_.counterparts.push_back(group * count + ranks_.place);
      group_ = all.groups_[static_cast<size_t>(ranks_.group)].get();
    }

    const engine::SharingRanks& ranks() const override { return ranks_; }
    std::shared_ptr<std::byte> get(const std::string& name, size_t bytes) override {
      const std::lock_guard lock(group_->mutex);
      std::shared_ptr<std::byte>& memory = group_->memory[name];
      if (!memory) memory = group_->own.get(name, bytes);
      return memory;
    }
    void meet() override { group_->meeting.arrive_and_wait(); }

   private:
    engine::SharingRanks ranks_;
    Group* group_ = nullptr;
  };

  std::vector<std::unique_ptr<Group>> groups_;
  std::vector<std::unique_ptr<OfRank>> ranks_;
};

}  // namespace sluice::nodes::testing
