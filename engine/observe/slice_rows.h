#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "engine/observe/work_observer.h"

namespace sluice::engine {

/// Slices that have ended and that nobody has taken yet, a row an executor. Steps of one node that follow each other without a
/// pause become one slice.
///
/// Threads: ended() by the thread of each executor, mostly without a lock; take() by one thread at a time.
class SliceRows {
 public:
  using Sink = std::function<void(std::span<const Slice>)>;

  /// `on_full` is called by an executor that has filled a chunk of its row. Of a row in which `most_full` chunks wait, what ends
  /// is left out.
  SliceRows(size_t executors, std::function<void()> on_full, size_t most_full = std::numeric_limits<size_t>::max());

  void ended(const Slice& slice);

  /// Hands all slices on that have ended, those of a row in their order; `also_last`: the steps too that may still grow.
  void take(bool also_last, const Sink& sink);

  /// Slices that were left out so far.
  int64_t left_out() const { return left_out_.load(std::memory_order_relaxed); }

  size_t size() const { return rows_.size(); }

 private:
  struct Chunk {
    static constexpr size_t kSlices = 512;
    std::array<Slice, kSlices> slices;
    std::atomic<size_t> filled{0};
    size_t taken = 0;  // used by who takes
  };
  struct alignas(64) Row {
    bool grows = false;                                       // there is a step; used by the executor
    std::unique_ptr<Chunk> open = std::make_unique<Chunk>();  // filled by the executor without a lock, exchanged under the mutex
    std::mutex mutex;                                         // guards what follows
    std::optional<Slice> step;                                // may still grow
    std::vector<std::unique_ptr<Chunk>> full, spare;
  };

  static std::optional<Slice> grow(Row& row, const Slice& slice);
  void put(Row& row, const Slice& slice);
  void close_chunk(Row& row);
  static void take_row(Row& row, bool also_last, const Sink& sink);

  const std::function<void()> on_full_;
  const size_t most_full_;
  std::vector<Row> rows_;  // by executor
  std::atomic<int64_t> left_out_{0};
};

}  // namespace sluice::engine
