#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/contract/world/outside_work.h"
#include "nodes/scorers/code/code_problem.h"
#include "nodes/scorers/code/sandbox.h"

namespace sluice::nodes {

struct CodeLimits {
  std::chrono::milliseconds timeout{10'000};  // for one test
  int64_t memory_bytes = 1 << 30;             // address space of a process
  int64_t file_bytes = 64 << 20;
  int64_t processes = 32;
  size_t output_bytes = 1 << 20;  // what a program writes, or a solution answers in a test
  size_t parallel = 1;            // runs
  bool stop_at_fail = true;       // tests of a solution after one that fails need not run
};

/// A solution, and the tests it is for, which outlive the runs.
struct CodeSolution {
  std::string code;
  const CodeProblem* problem;
};

/// Runs the solutions, each against its tests: which of them passed, in the order of the solutions whatever the timing. Programs
/// run once for each test, others once. Throws UserError when a sandbox cannot be started, and what `wait` does; then nothing
/// runs any more.
std::vector<std::vector<bool>> run_code(const Sandbox& sandbox, const CodeLimits& limits,
                                        const std::vector<CodeSolution>& solutions, const engine::OutsideWait& wait = {});

}  // namespace sluice::nodes
