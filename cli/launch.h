#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/subprocess.h"
#include "cli/launch_signals.h"
#include "cli/run_signals.h"

namespace sluice::cli {

struct LaunchOptions {
  std::vector<std::string> words;  // the program and its arguments, the same for every rank
  int ranks = 1;
  int port = 0;                              // of 127.0.0.1, where the ranks meet; 0: one that is free
  int expendable_from = 0;                   // ranks from this one on may be killed, and the others go on; 0: none may
  int restarts = 0;                          // how often each of these is started again
  std::chrono::milliseconds notice{12'000};  // for the others to end by themselves, when one has ended badly, or rank 0
  std::chrono::milliseconds grace{5'000};    // from SIGTERM to SIGKILL, when they have not
};

/// Several processes of one program on this machine that end together: each is a rank of one world (base/world_environment.h) and
/// has its share of the cores that this process may use.
///
/// Rank 0 writes where this process does. What the others write comes line by line on stderr, with the rank in front. SIGINT,
/// SIGTERM and SIGUSR1 are passed on to all ranks; Ctrl-Z stops them with this process. All ranks die with this process, however
/// that ends. One a process, used by one thread.
class Launch {
 public:
  /// Starts all ranks. Throws UserError when one cannot be started; then none is left.
  explicit Launch(const LaunchOptions& options);

  /// Waits for: all ranks. Ends when: they have ended. After one ended badly, which is said on stderr, or rank 0, the others
  /// have `notice` and `grace`; nothing else hurries them, since saving may take long. Where some have ended and those that
  /// are left have been stopped for `notice`, they are killed: nobody else would miss them. Returns 0, or the code of the
  /// first that ended badly as a shell tells it; a rank that ended as a signal asked it to counts only where no other ended
  /// badly, and one that may be lost, and was killed or given up, counts for nothing as long as another one of these is left.
  /// It is started again while the run goes on.
  int wait();

 private:
  using Clock = Subprocess::Clock;
  struct Rank {
    int number;
    std::unique_ptr<Subprocess> process;
    bool end_is_known = false;
    int restarts = 0;
  };

  std::unique_ptr<Subprocess> started(int number) const;
  void list_processes();
  bool all_ended() const;
  void print_lines(Rank& rank);
  void print(const std::string& lines) const;
  void look_for_ends();
  void judge_end(Rank& rank);
  static bool is_lost(const Rank& rank);
  bool others_go_on_without(const Rank& rank) const;
  void end_late_ones();
  void go_on_without(Rank& rank);
  void start_again(Rank& rank);
  void pass_signals();
  void signal_all(int number);
  void stop_with_ranks();
  void hurry();
  void end_stopped_ones();

  const LaunchOptions options_;
  const int port_;
  const bool cursor_;  // stderr is a terminal on which rank 0 may have an unfinished line
  RunSignals run_signals_;
  LaunchSignals signals_;
  std::vector<Rank> ranks_;
  std::vector<Subprocess*> processes_;
  bool asked_to_end_ = false;  // a SIGINT or SIGTERM was passed on
  int asked_code_ = 0;         // of the first that ended because of it
  int bad_code_ = 0;           // of the first that ended badly otherwise
  std::optional<Clock::time_point> ask_at_, kill_at_, late_at_;
  std::optional<Clock::time_point> stopped_since_;  // all that are left are
};

/// The share of `cores` that a rank gets: as many as the others have, or one more; none is in two shares, unless there are fewer
/// cores than ranks. Then neighbours share.
std::vector<int> cores_of_rank(const std::vector<int>& cores, int rank, int ranks);

}  // namespace sluice::cli
