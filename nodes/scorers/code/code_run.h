#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "base/process/subprocess.h"
#include "nodes/scorers/code/code_runs.h"

namespace sluice::nodes {

/// Which tests of a solution one run is for.
struct CodeTask {
  size_t solution;
  size_t first_test;
  size_t tests;
};

/// A solution on its way through one or more of its tests: a sandbox, or two. Belongs to one thread; nothing moves before
/// Subprocess::exchange() on processes().
///
/// A solution's sandbox has no test's verdict in it, and none of what tests compare with: outputs and values are compared here,
/// and statements run in a sandbox of their own (code_judge.py), for which this class carries lines to and fro.
class CodeRun {
 public:
  using Clock = Subprocess::Clock;

  virtual ~CodeRun() = default;

  virtual std::vector<Subprocess*> processes() const = 0;

  /// Looks at what came, and marks the tests that passed. False: the run is over. Throws UserError where a sandbox did not start.
  virtual bool advance(std::vector<bool>& passed) = 0;

  const CodeTask& task() const { return task_; }
  Clock::time_point deadline() const { return deadline_; }

 protected:
  CodeRun(const CodeLimits& limits, const CodeTask& task);

  /// All processes have said that they run; from then on the deadline is that of the first test.
  bool all_started();
  bool late() const { return Clock::now() >= deadline_; }
  void next_deadline() { deadline_ = Clock::now() + limits_.timeout; }
  std::string limits_text() const;

  const CodeLimits& limits_;

 private:
  CodeTask task_;
  Clock::time_point deadline_;
  size_t started_ = 0;  // of processes(), the first
};

/// Starts a run. `sandbox`, `limits` and `solution` outlive it.
std::unique_ptr<CodeRun> start_run(const Sandbox& sandbox, const CodeLimits& limits, const CodeTask& task,
                                   const CodeSolution& solution);

}  // namespace sluice::nodes
