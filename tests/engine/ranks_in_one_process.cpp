#include "tests/engine/ranks_in_one_process.h"

#include <chrono>
#include <thread>
#include <utility>

namespace sluice::engine::testing {

class RanksInOneProcess::Rank final : public Reductions {
 public:
  Rank(RanksInOneProcess& all, World world) : all_(all), world_(world) {}

  World world() const override { return world_; }
  void combine(const Key& key, Contribution mine, Done done) override {
    all_.contribute(world_.rank, key, std::move(mine), std::move(done));
  }
  void abandon() override { all_.abandon(world_.rank); }

 private:
  RanksInOneProcess& all_;
  const World world_;
};

RanksInOneProcess::RanksInOneProcess(int size, uint64_t seed, int64_t pause_us)
    : pause_us_(pause_us), random_(seed, 77), abandoned_(static_cast<size_t>(size)) {
  for (int rank = 0; rank < size; ++rank) ranks_.push_back(std::make_unique<Rank>(*this, World{.rank = rank, .size = size}));
}

RanksInOneProcess::~RanksInOneProcess() = default;

Reductions& RanksInOneProcess::rank(int index) { return *ranks_[static_cast<size_t>(index)]; }

size_t RanksInOneProcess::open() const {
  const std::lock_guard lock(mutex_);
  return entries_.size();
}

void RanksInOneProcess::pause() {
  if (pause_us_ == 0) return;
  int64_t time = 0;
  {
    const std::lock_guard lock(mutex_);
    time = static_cast<int64_t>(random_.below(static_cast<uint64_t>(pause_us_)));
  }
  if (time > pause_us_ / 2) std::this_thread::sleep_for(std::chrono::microseconds(time));
}

void RanksInOneProcess::contribute(int rank, const Reductions::Key& key, Contribution mine, Reductions::Done done) {
  pause();
  Entry complete;
  {
    const std::lock_guard lock(mutex_);
    if (abandoned_[static_cast<size_t>(rank)]) {
      complete.waiting.emplace(rank, std::move(done));
    } else {
      Entry& entry = entries_[key];
      if (entry.came++ == 0)
        entry.all = std::move(mine);
      else
        add_contribution(entry.all, mine);
      entry.waiting.emplace(rank, std::move(done));
      if (entry.came < static_cast<int>(ranks_.size())) return;
      complete = std::move(entries_.extract(key).mapped());
    }
  }
  for (auto& [waiting, call] : complete.waiting) {
    pause();
    call(complete.all);
  }
}

void RanksInOneProcess::abandon(int rank) {
  std::vector<Reductions::Done> waiting;
  {
    const std::lock_guard lock(mutex_);
    abandoned_[static_cast<size_t>(rank)] = true;
    for (auto& [key, entry] : entries_) {
      if (auto done = entry.waiting.extract(rank)) waiting.push_back(std::move(done.mapped()));
    }
  }
  for (const Reductions::Done& done : waiting) done({});
}

}  // namespace sluice::engine::testing
