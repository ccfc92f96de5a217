#pragma once

namespace sluice::cli {

/// What a run does about the other signals, from its construction to the end of the process: SIGHUP and SIGPIPE do not end it,
/// because a run outlives its terminal and whoever reads its output (a write that fails then is dropped), nor does SIGXFSZ,
/// because a file that may not grow is an error that names it; SIGUSR1 is remembered. A command that runs makes one first of all,
/// since ranks may wait long for each other; all of a process have one memory.
class RunSignals {
 public:
  RunSignals();
  RunSignals(const RunSignals&) = delete;
  RunSignals& operator=(const RunSignals&) = delete;

  /// Whether SIGUSR1 came since it was asked last.
  bool take_save_request();
};

}  // namespace sluice::cli
