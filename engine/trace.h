#pragma once

#include <condition_variable>
#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/file.h"
#include "engine/plan.h"
#include "engine/work_observer.h"

namespace sluice::engine {

/// Writes `trace.json` in Chrome's trace format while the run goes on: one row an executor, one slice a piece of work. Steps of one node
/// that follow each other without a pause become one slice. Executors only put slices into a buffer; a thread of its own writes them
/// four times a second. Memory does not grow with the run.
class TraceWriter final : public WorkObserver {
 public:
  /// `on_error` is called in a catch block when the file cannot be written, such as on a full disk; nothing is written after that.
  TraceWriter(const std::filesystem::path& path, const Plan& plan, std::function<void()> on_error);
  ~TraceWriter() override;

  void ended(const Slice& slice) override;

  /// Completes the file; once, when no work is under way. Throws UserError.
  void close();

 private:
  struct Row {
    std::mutex mutex;
    std::optional<Slice> last;  // may still grow
    std::vector<Slice> slices;  // finished, not written yet
  };

  void loop();
  void write_finished(bool also_last);
  std::string text_of(const Slice& slice) const;

  const std::vector<std::string> nodes_;
  const std::function<void()> on_error_;
  OutputFile file_;
  std::vector<Row> rows_;  // by executor
  std::mutex mutex_;
  std::condition_variable wake_;
  bool closing_ = false;
  bool broken_ = false;  // used by the thread, and by close() after it
  std::thread thread_;
};

}  // namespace sluice::engine
