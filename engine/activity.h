#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "engine/trace.h"

namespace sluice::engine {

/// What a piece of work counts as in the summary.
enum class WorkClass { kRollout, kTrain, kOther };

/// Seconds since the last take().
struct BusySeconds {
  double rollout = 0;
  double train = 0;
  double overlap = 0;  // rollout and training at once
};

/// Knows what every executor does at the moment, and for how long generation and training were busy, alone and together. Thread-safe.
class Activity {
 public:
  Activity(size_t executors, TraceWriter* trace) : current_(executors), trace_(trace) {}

  /// Marks the work of one executor from construction to destruction.
  class Scope {
   public:
    Scope(Activity& activity, WorkClass work_class, Slice slice);
    ~Scope() noexcept(false);  // the trace may meet a full disk
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

    void set_tokens(int64_t tokens) { slice_.tokens = tokens; }

   private:
    Activity& activity_;
    WorkClass class_;
    Slice slice_;
  };

  BusySeconds take();

  /// Per executor: the node that it works on, or an empty string.
  std::vector<std::string> current() const;

 private:
  using Clock = std::chrono::steady_clock;

  void change(WorkClass work_class, int by, int executor, const std::string& node);
  void account();  // the time since the last change; the mutex is held
  int64_t now_us() const;

  mutable std::mutex mutex_;
  std::array<int, 3> busy_{};  // pieces of work under way, by class
  BusySeconds seconds_;
  Clock::time_point last_change_ = Clock::now();
  const Clock::time_point start_ = Clock::now();
  std::vector<std::string> current_;
  TraceWriter* const trace_;  // may be null
};

}  // namespace sluice::engine
