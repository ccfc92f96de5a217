#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <mutex>
#include <vector>

#include "engine/plan/plan.h"

namespace sluice::engine {

/// How far the paths of a run are, so that they end it after the same iteration. The paths that take part in every iteration
/// lead; one that only measures follows them, and so does one whose data have ended. Thread-safe.
class PathProgress {
 public:
  /// `on_change` is called on the thread of the path that got on, without a lock.
  PathProgress(const Plan& plan, int64_t begun, std::function<void()> on_change);

  /// A leader begins an iteration. False: another has ended the run before it.
  bool begin(int path, int64_t iteration);

  /// A leader that is to end early does so before `iteration`. False: another one has begun it, so that all have to go through
  /// it.
  bool leave(int path, int64_t iteration);

  /// A leader's data have ended before `iteration`: from now on it follows.
  void follow(int path, int64_t iteration);

  /// A path has handed on all of an iteration.
  void end(int path, int64_t iteration);

  /// A path hands on nothing any more.
  void finish(int path);

  /// Some other path leads through that iteration.
  bool is_led(int path, int64_t iteration) const;

  /// Nobody leads any more, and no other path will hand on that iteration.
  bool is_over(int path, int64_t iteration) const;

 private:
  struct Path {
    bool leads = true;
    bool finished = false;
    int64_t begun = -1;  // the last iteration that it has begun as a leader
    int64_t ended = -1;  // likewise handed on; of a path that only ever follows: none
  };

  const std::function<void()> on_change_;
  mutable std::mutex mutex_;
  std::vector<Path> paths_;
  int64_t horizon_ = std::numeric_limits<int64_t>::max();  // iterations from here on do not begin
};

}  // namespace sluice::engine
