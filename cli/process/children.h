#pragma once

#include <list>
#include <memory>
#include <string>
#include <vector>

#include "base/process/subprocess.h"
#include "cli/process/launch_signals.h"
#include "cli/process/run_signals.h"

namespace sluice::cli {

/// A process that was started, as people are told of it.
struct Child {
  std::string name;  // "rank 1"
  std::unique_ptr<Subprocess> process;
  bool end_is_known = false;  // Children::take_ended() has told it

  /// "rank 1 (pid 4711)"
  std::string called() const;
};

/// Processes that end with this one, however that ends, and what they need of it while they run.
///
/// What they write comes line by line on stderr, with the name in front, unless they share the output of this process. SIGINT,
/// SIGTERM and SIGUSR1 are passed on to all of them; Ctrl-Z stops them with this process; a closed terminal ends nothing. One a
/// process, used by one thread.
class Children {
 public:
  using Clock = Subprocess::Clock;

  Children();

  /// Starts one without input; `options` say the rest. Throws UserError when it cannot be started. It stays where it is until
  /// forget().
  Child& start(const std::string& name, SubprocessOptions options);

  /// Likewise, in the place of one that has ended.
  void start_again(Child& child, SubprocessOptions options);

  void forget(const Child& child);

  /// Waits for: something to happen to one of them. Ends when: it has, or after 100 ms. Prints what they have written, then
  /// passes on the signals that came.
  void attend();

  /// Those that have ended since it was asked last. The killed ones first: others may have ended because of them.
  std::vector<Child*> take_ended();

  void signal_all(int number);
  void signal_all_groups(int number);

  /// The first SIGINT or SIGTERM that was passed on; 0: none.
  int asked_to_end() const { return asked_to_end_; }

  /// Whole lines on stderr, at once. The unfinished line of a child that shares the terminal, which it will write again, gives
  /// way.
  void print(const std::string& lines) const;

 private:
  void print_lines(Child& child) const;
  void pass_signals();
  void stop_with_all();

  const bool cursor_;  // stderr is a terminal
  RunSignals run_signals_;
  LaunchSignals signals_;
  std::list<Child> children_;
  int asked_to_end_ = 0;
};

}  // namespace sluice::cli
