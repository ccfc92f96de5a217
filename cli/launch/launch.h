#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/numbers/rank_range.h"
#include "cli/process/children.h"

namespace sluice::cli {

struct LaunchOptions {
  std::vector<std::string> words;  // the program and its arguments, the same for every rank
  int ranks = 1;
  int port = 0;                              // of 127.0.0.1, where the ranks meet; 0: one that is free
  std::vector<int> blocked = {};             // signals that a rank does not get until it unblocks them
  RankRange expendable = {};                 // these may be killed, and the others go on
  int restarts = 0;                          // how often each of these is started again, and all where one is lost too soon
  std::function<bool(int64_t)> has_begun{};  // with that process as rank 0. Empty: it has
  std::chrono::milliseconds notice{12'000};  // for the others to end by themselves, when one has ended badly, or rank 0
  std::chrono::milliseconds grace{5'000};    // from SIGTERM to SIGKILL, when they have not
};

/// Several processes of one program on this machine that end together: each is a rank of one world
/// (base/process/world_environment.h) and has its share of the cores that this process may use.
///
/// They are the Children of this process; rank 0 writes where it does. One a process, used by one thread.
class Launch {
 public:
  /// Starts all ranks. Throws UserError when one cannot be started; then none is left.
  explicit Launch(const LaunchOptions& options);

  /// Waits for: all ranks. Ends when: they have ended. After one ended badly, which is said on stderr, or rank 0, the others
  /// have `notice` and `grace`, or where the run has not begun 2 s; nothing else hurries them, since saving may take long. Where
  /// some have ended and those that are left have been stopped for `notice`, they are killed: nobody else would miss them.
  ///
  /// Returns 0, or the code of the first that ended badly as a shell tells it, or that of rank 0 where it says that nothing was
  /// run. A rank that ended as a signal asked it to counts only where no other ended badly; before the run has begun, one that
  /// fails after a signal counts only where none ended by that. One that may be lost, and was killed or given up, counts for
  /// nothing. It is started again while the run goes on, and killed where it is not in the run when that ends; where it was the
  /// last of these, the others save and end by themselves; once rank 0 has ended well it counts for nothing either. Before the
  /// run has begun the others still wait for that very process: all are ended, and all started again, `restarts` times at most.
  /// Throws UserError where one cannot be; then none is left.
  int wait();

 private:
  using Clock = Children::Clock;
  struct Rank {
    int number;
    Child* child;
    int restarts = 0;
    bool killed_here = false;
    bool ended_as_late = false;  // which was said, and counts for nothing
  };

  /// What has come of the ranks since they were started together.
  struct Course {
    int asked_code = 0;                 // of the first that ended because a signal was passed on
    const Rank* after_asked = nullptr;  // the first that failed after a signal, maybe since another one had ended by it
    int bad_code = 0;                   // of the first that ended badly otherwise
    bool has_begun = false;             // the run
    bool has_asked = false;             // them to end
    bool begins_again = false;          // once they have ended
    bool none_samples = false;          // of ranks that may be lost none is left: the others save and end
    std::optional<Clock::time_point> ask_at, kill_at, late_at;
    std::optional<Clock::time_point> stopped_since;  // all that are left are
  };

  SubprocessOptions options_of(int number) const;
  void wait_for_all();
  void begin_again();
  bool all_ended() const;
  void look_for_ends();
  void judge_end(Rank& rank);
  void judge_later_end(const Rank& rank);
  void wait_for_others();
  void take_for_bad(const Rank& rank);
  bool may_follow_from_a_signal(const Rank& rank) const;
  void remember_for_later(const Rank& rank);
  void look_whether_it_begins();
  void end_before_it_begins(const Rank& rank);
  void ask_all_to_end();
  static bool is_lost(const Rank& rank);
  bool others_go_on_without(const Rank& rank) const;
  bool has_ended_without(const Rank& rank) const;
  bool some_other_samples() const;
  bool is_over() const;
  std::string what_others_do_without(const Rank& rank) const;
  void end_late_ones();
  static void kill(Rank& rank);
  void go_on_without(Rank& rank);
  void start_again(Rank& rank);
  void hurry();
  void end_stopped_ones();

  const LaunchOptions options_;
  int port_;
  Children children_;
  std::vector<Rank> ranks_;
  int beginnings_ = 0;  // after the first
  Course course_;
};

}  // namespace sluice::cli
