#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>

#include "base/process/machine.h"
#include "engine/ranks/mail.h"

namespace sluice::engine {

/// What is added to a time of this rank's steady clock to have that of rank 0, and how wrong it may be.
struct ClockOffset {
  int64_t ns = 0;
  int64_t error_ns = 0;
};

/// How far the steady clock of this rank is behind that of rank 0.
///
/// It asks rank 0 for its time some times, by mail. What it is told was true between question and answer, so the answer that came
/// soonest is believed, and half of its way there and back is how wrong that may be. Clocks drift: it asks again when what it
/// knows is a minute old and somebody wants it. Ranks of one machine have one clock, and no error.
///
/// The mail outlives this, and is closed before this goes. Threads: offset() from any; the rest happens on that of the mail.
/// Failure: on a mail that is over nothing becomes known, or what was known stays.
class RankClock {
 public:
  using Now = std::function<int64_t()>;

  /// `clock`: see steady_clock_name().
  explicit RankClock(Mail& mail, Now now = steady_ns, const std::string& clock = steady_clock_name());

  /// Nothing: it is not known yet.
  std::optional<ClockOffset> offset();

  static int64_t steady_ns();

 private:
  void ask();
  void receive(int from, const std::string& message);
  void answer(int to, const std::string& clock);
  bool take_in(int64_t time_of_rank_0, bool one_clock);

  Mail& mail_;
  const Now now_;
  const std::string clock_;
  std::mutex mutex_;                   // guards what follows
  int left_ = 0;                       // questions of this series, the open one included
  int64_t asked_ns_ = 0;               // when the open question was asked
  std::optional<ClockOffset> best_;    // of this series
  std::optional<ClockOffset> offset_;  // of the last one that is complete
  int64_t known_ns_ = 0;               // when that was
};

}  // namespace sluice::engine
