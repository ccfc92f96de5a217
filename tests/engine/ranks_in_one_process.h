#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "base/random.h"
#include "engine/contract/world.h"

namespace sluice::engine::testing {

/// Several ranks of one run, each in threads of this process. What they contribute is combined by whoever comes last, who then
/// calls all the others back, with pauses at random before each step. Thread-safe.
class RanksInOneProcess {
 public:
  /// `pause_us`: the longest pause.
  RanksInOneProcess(int size, uint64_t seed, int64_t pause_us);

  ~RanksInOneProcess();

  Reductions& rank(int index);

  /// Keys that some rank has not contributed to.
  size_t open() const;

 private:
  class Rank;
  struct Entry {
    Contribution all;
    std::map<int, Reductions::Done> waiting;  // by rank
    int came = 0;
  };

  void contribute(int rank, const Reductions::Key& key, Contribution mine, Reductions::Done done);
  void abandon(int rank);
  void pause();

  const int64_t pause_us_;
  std::vector<std::unique_ptr<Rank>> ranks_;
  mutable std::mutex mutex_;  // guards what follows
  RandomStream random_;
  std::map<Reductions::Key, Entry> entries_;
  std::vector<bool> abandoned_;  // by rank
};

}  // namespace sluice::engine::testing
