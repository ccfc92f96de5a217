#pragma once

#include <atomic>

namespace sluice::cli {

/// While this lives, a call of exit() in somebody's code, such as a plugin's or a library's, does not end the program as if all
/// were well: it says so, and ends with kFailed. What is to run at exit() cannot be taken back, so a flag of each stays until
/// then.
class ExitGuard {
 public:
  ExitGuard();
  ~ExitGuard() { *under_way_ = false; }
  ExitGuard(const ExitGuard&) = delete;
  ExitGuard& operator=(const ExitGuard&) = delete;

 private:
  std::atomic<bool>* const under_way_;
};

}  // namespace sluice::cli
