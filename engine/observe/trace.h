#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/file.h"
#include "engine/observe/work_observer.h"
#include "engine/plan/plan.h"

namespace sluice::engine {

/// Writes `trace.json` in Chrome's trace format while the run goes on: one row an executor, one slice a piece of work. Steps of
/// one node that follow each other without a pause become one slice. Executors only put slices into a buffer; a thread of its own
/// writes them four times a second, or once a buffer is full. Memory does not grow with the run.
class TraceWriter final : public WorkObserver {
 public:
  /// `on_error` is called in a catch block when the file cannot be written, such as on a full disk; nothing is written after
  /// that. `begin_ns`: where on the trace's time the run begins. Above 0 the file goes on, which cut_trace() has left.
  TraceWriter(const std::filesystem::path& path, const Plan& plan, int64_t begin_ns, std::function<void()> on_error,
              FileSystem& files);
  ~TraceWriter() override;

  void ended(const Slice& slice) override;

  /// Brings all slices that have ended to the disk. Without effect after close(). From any thread. Throws UserError.
  void flush();

  /// Completes the file; once, when no work is under way. Throws UserError.
  void close();

 private:
  struct Chunk {
    static constexpr size_t kSlices = 512;
    std::array<Slice, kSlices> slices;
    std::atomic<size_t> filled{0};
    size_t written = 0;  // used by the writer
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
  void loop();
  void write_or_break();
  void write_finished(bool also_last);
  void write_row(Row& row, bool also_last);
  void write(std::span<const Slice> slices);
  void append(const Slice& slice);

  const std::vector<std::string> heads_;  // by node
  const int64_t begin_ns_;
  const std::function<void()> on_error_;
  OutputFile file_;
  std::vector<Row> rows_;  // by executor
  std::mutex mutex_;
  std::condition_variable wake_;
  bool full_ = false;  // some chunk is
  bool closing_ = false;
  std::mutex writing_;  // guards what follows, and the file
  bool broken_ = false;
  bool closed_ = false;
  std::string text_;
  std::thread thread_;
};

}  // namespace sluice::engine
