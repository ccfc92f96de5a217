#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>

namespace sluice::comm {

/// Whether a connection stands still: there is something for the other rank, and none of it gets there.
///
/// Time counts from look to look, and at most twice what lies between two: a process that was stopped meanwhile, as by Ctrl-Z,
/// has not looked, and what it sent may have waited for a rank that was stopped too. A plain value, of one thread.
class StallWatch {
 public:
  using Clock = std::chrono::steady_clock;

  /// The connections are looked at so often.
  static constexpr std::chrono::milliseconds kLook{1000};

  /// `got_there`: bytes so far. `has_left`: there are others. Returns for how long it has stood still.
  Clock::duration look(uint64_t got_there, bool has_left, Clock::time_point now) {
    const Clock::duration since = last_ ? now - *last_ : Clock::duration{0};
    last_ = now;
    if (has_left && stood_ && got_there == got_there_)
      still_ += std::min<Clock::duration>(since, 2 * kLook);
    else
      still_ = Clock::duration{0};
    stood_ = has_left;
    got_there_ = got_there;
    return still_;
  }

 private:
  std::optional<Clock::time_point> last_;
  bool stood_ = false;  // at the last look there was something for the other rank
  uint64_t got_there_ = 0;
  Clock::duration still_{0};
};

}  // namespace sluice::comm
