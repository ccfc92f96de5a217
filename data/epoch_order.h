#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace sluice::data {

/// In which order a source goes through its rows, epoch after epoch. Which row comes at a position depends on nothing but the
/// position, so a resumed run goes on where it was without saved state. Memory: 4 bytes a row when shuffled. Not thread-safe.
class EpochOrder {
 public:
  /// rows: at least 1. epochs 0: without end. Without `shuffle` each epoch is in the order of the file. Sources of another number
  /// are shuffled in another way.
  EpochOrder(uint64_t seed, size_t rows, bool shuffle, int64_t epochs, uint32_t source = 0)
      : seed_(seed), rows_(rows), shuffle_(shuffle), epochs_(epochs), source_(source) {}

  /// Nothing when the epochs are over. Cheap within one epoch; the first position of another one costs a shuffle.
  std::optional<size_t> row_at(uint64_t position);

 private:
  uint64_t seed_;
  size_t rows_;
  bool shuffle_;
  int64_t epochs_;
  uint32_t source_;
  uint64_t shuffled_epoch_ = 0;
  std::vector<uint32_t> order_;  // of shuffled_epoch_; empty before the first use
};

}  // namespace sluice::data
