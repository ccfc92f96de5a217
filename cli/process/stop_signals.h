#pragma once

namespace sluice::cli {

/// Sees Ctrl-C and SIGTERM while it lives; the second one, at least a tenth of a second after the first, ends the process at
/// once, with the exit code of that signal. One at a time in a process.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  /// The first one: SIGINT or SIGTERM; 0: none came.
  int seen() const;
};

}  // namespace sluice::cli
