#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"

namespace sluice::engine {

/// One piece of work of one node on one executor.
struct Slice {
  int executor = 0;
  std::string node;
  int64_t iteration = 0;
  int64_t micro_batch = -1;  // -1: none (a decode step, a barrier's whole iteration)
  int64_t tokens = 0;
  int64_t begin_us = 0;
  int64_t end_us = 0;
};

/// Writes `trace.json` in Chrome's trace format while the run goes on: one row an executor, one slice a piece of work. Steps of one node
/// that follow each other without a pause become one slice. Memory does not grow with the run. Thread-safe.
class TraceWriter {
 public:
  TraceWriter(const std::filesystem::path& path, const std::vector<std::string>& executors);

  /// Throws UserError when the disk is full.
  void add(Slice slice);

  /// Completes the file; called once.
  void close();

 private:
  void write(const Slice& slice);

  std::mutex mutex_;
  OutputFile file_;
  std::vector<std::optional<Slice>> last_;  // per executor: may still grow
  std::string buffer_;
};

}  // namespace sluice::engine
