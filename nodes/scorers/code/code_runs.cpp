#include "nodes/scorers/code/code_runs.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/text/strings.h"
#include "nodes/scorers/code/code_run.h"

namespace sluice::nodes {
namespace {

std::vector<CodeTask> tasks_of(const std::vector<CodeSolution>& solutions) {
  std::vector<CodeTask> tasks;
  for (size_t s = 0; s < solutions.size(); ++s) {
    if (trim(solutions[s].code).empty()) continue;
    const size_t tests = solutions[s].problem->tests();
    const bool program = solutions[s].problem->of_program();
    for (size_t t = 0; t < (program ? tests : 1); ++t) tasks.push_back({s, t, program ? 1 : tests});
  }
  return tasks;
}

constexpr std::chrono::milliseconds kLookAtRuns{500};  // between two looks at whether anybody still needs them

// Waits for: news of a run. Ends at the earliest of their deadlines, or after half a second.
void exchange(const std::vector<std::unique_ptr<CodeRun>>& runs) {
  std::vector<Subprocess*> processes;
  auto until = Subprocess::Clock::now() + kLookAtRuns;
  for (const auto& run : runs) {
    for (Subprocess* process : run->processes()) processes.push_back(process);
    until = std::min(until, run->deadline());
  }
  Subprocess::exchange(processes, until);
}

}  // namespace

std::vector<std::vector<bool>> run_code(const Sandbox& sandbox, const CodeLimits& limits,
                                        const std::vector<CodeSolution>& solutions, const engine::OutsideWait& wait) {
  std::vector<std::vector<bool>> passed;
  for (const CodeSolution& solution : solutions) passed.emplace_back(solution.problem->tests(), false);
  const std::vector<CodeTask> tasks = tasks_of(solutions);
  std::vector<uint8_t> failed(solutions.size(), 0);  // a test of it did
  std::vector<std::unique_ptr<CodeRun>> runs;
  for (size_t next = 0; next < tasks.size() || !runs.empty();) {
    wait.go_on();
    for (; next < tasks.size() && runs.size() < limits.parallel; ++next) {
      const CodeTask& task = tasks[next];
      if (limits.stop_at_fail && failed[task.solution] != 0) continue;
      runs.push_back(start_run(sandbox, limits, task, solutions[task.solution]));
    }
    if (runs.empty()) continue;
    exchange(runs);
    std::erase_if(runs, [&](const auto& run) {
      const CodeTask& task = run->task();
      if (run->advance(passed[task.solution])) return false;
      if (!passed[task.solution][task.first_test]) failed[task.solution] = 1;
      return true;
    });
  }
  return passed;
}

}  // namespace sluice::nodes
