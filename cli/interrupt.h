#pragma once

namespace sluice::cli {

/// Counts Ctrl-C and SIGTERM while it lives; the second one ends the process at once with exit code 130. One at a time in a process.
class InterruptWatch {
 public:
  InterruptWatch();
  ~InterruptWatch();
  InterruptWatch(const InterruptWatch&) = delete;
  InterruptWatch& operator=(const InterruptWatch&) = delete;

  bool interrupted() const;
};

}  // namespace sluice::cli
