#include "nodes/scorers/code_runs.h"

#include <sys/random.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <utility>

#include "base/error.h"
#include "base/strings.h"
#include "nodes/column_json.h"
#include "nodes/scorers/embedded.h"

namespace sluice::nodes {
namespace {

using Clock = Subprocess::Clock;
using std::chrono::milliseconds;

constexpr milliseconds kStartTime{60'000};

struct Task {
  size_t solution;
  size_t first_test;
  size_t tests;
};

// What a solution cannot guess, so that it cannot write its own verdict. It changes no result.
std::string new_secret() {
  unsigned char bytes[16];
  SLUICE_CHECK(::getrandom(bytes, sizeof bytes, 0) == sizeof bytes, "the system has no random bytes");
  std::string text;
  for (const unsigned char byte : bytes) {
    char hex[3];
    std::snprintf(hex, sizeof hex, "%02x", byte);
    text += hex;
  }
  return text;
}

std::string limits_text(const CodeLimits& limits, size_t tests) {
  const int64_t seconds = (limits.timeout.count() + 999) / 1000 * static_cast<int64_t>(tests) + 1;
  return Json{{"RLIMIT_CPU", seconds},
              {"RLIMIT_AS", limits.memory_bytes},
              {"RLIMIT_FSIZE", limits.file_bytes},
              {"RLIMIT_NPROC", limits.processes},
              {"RLIMIT_NOFILE", 256},
              {"RLIMIT_CORE", 0}}
      .dump();
}

// One sandbox with a solution and one or more of its tests.
class Run {
 public:
  Run(const Sandbox& sandbox, const CodeLimits& limits, const Task& task, const CodeSolution& solution)
      : task_(task), limits_(limits), problem_(*solution.problem), deadline_(Clock::now() + kStartTime) {
    const bool program = problem_.of_program();
    process_ =
        sandbox.start({"/sandbox/runner.py", limits_text(limits, task.tests), program ? "program" : "tests"},
                      {{"/sandbox/runner.py", std::string(embedded::kCodeRunner)}, {"/sandbox/solution.py", solution.code}},
                      limits.output_bytes);
    process_->send(program ? problem_.inputs[task.first_test] : job() + "\n");
    process_->end_input();
  }

  const Task& task() const { return task_; }
  Subprocess* process() const { return process_.get(); }
  Clock::time_point deadline() const { return deadline_; }

  /// Looks at what came, and marks the tests that passed. False: the run is over.
  bool advance(std::vector<bool>& passed) {
    const bool late = Clock::now() >= deadline_;
    if (!started_ && !take_start(late)) return true;
    if (!problem_.of_program()) {
      while (auto line = process_->take_line()) {
        take_answer(*line, passed);
        if (answered_ == task_.tests || (limits_.stop_at_fail && answered_ > 0 && !passed[answered_ - 1])) return false;
      }
    }
    if (process_->ended() && problem_.of_program()) {
      passed[task_.first_test] = process_->succeeded() && !process_->overflowed() &&
                                 same_output(process_->take_output(), problem_.outputs[task_.first_test]);
    }
    return !process_->ended() && !process_->overflowed() && !late;
  }

 private:
  std::string job() {
    secret_ = new_secret();
    Json job{{"secret", secret_}};
    if (problem_.function.empty()) {
      job["tests"] = problem_.statements;
    } else {
      job["function"] = problem_.function;
      job["arguments"] = problem_.arguments;
    }
    return dump_json(job);
  }

  bool take_start(bool late) {
    started_ = process_->take_line() == "started";
    if (started_) {
      deadline_ = Clock::now() + limits_.timeout;
    } else if (process_->ended() || late) {
      const std::string said(trim(process_->errors()));
      const std::string end = process_->ended() ? "it " + process_->how_it_ended() : "nothing came of it";
      throw UserError("a sandbox could not be started: " + (said.empty() ? end : said));
    }
    return started_;
  }

  void take_answer(std::string_view line, std::vector<bool>& passed) {
    if (!line.starts_with(secret_ + " ")) return;
    line.remove_prefix(secret_.size() + 1);
    deadline_ = Clock::now() + limits_.timeout;
    if (!std::exchange(loaded_, true)) return;
    if (problem_.function.empty()) {
      passed[answered_] = line == "true";
    } else {
      const Json value = Json::parse(line, nullptr, /*allow_exceptions=*/false);
      passed[answered_] = !value.is_discarded() && same_value(value, problem_.values[answered_]);
    }
    ++answered_;
  }

  Task task_;
  const CodeLimits& limits_;
  const CodeProblem& problem_;
  std::string secret_;
  std::unique_ptr<Subprocess> process_;
  Clock::time_point deadline_;
  bool started_ = false;
  bool loaded_ = false;
  size_t answered_ = 0;  // tests
};

std::vector<Task> tasks_of(const std::vector<CodeSolution>& solutions) {
  std::vector<Task> tasks;
  for (size_t s = 0; s < solutions.size(); ++s) {
    if (trim(solutions[s].code).empty()) continue;
    const size_t tests = solutions[s].problem->tests();
    const bool program = solutions[s].problem->of_program();
    for (size_t t = 0; t < (program ? tests : 1); ++t) tasks.push_back({s, t, program ? 1 : tests});
  }
  return tasks;
}

// Waits for: news of a run. Ends at the earliest of their deadlines.
void exchange(const std::vector<std::unique_ptr<Run>>& runs) {
  std::vector<Subprocess*> processes;
  Clock::time_point until = Clock::time_point::max();
  for (const auto& run : runs) {
    processes.push_back(run->process());
    until = std::min(until, run->deadline());
  }
  Subprocess::exchange(processes, until);
}

}  // namespace

std::vector<std::vector<bool>> run_code(const Sandbox& sandbox, const CodeLimits& limits,
                                        const std::vector<CodeSolution>& solutions) {
  std::vector<std::vector<bool>> passed;
  for (const CodeSolution& solution : solutions) passed.emplace_back(solution.problem->tests(), false);
  const std::vector<Task> tasks = tasks_of(solutions);
  std::vector<uint8_t> failed(solutions.size(), 0);  // a test of it did
  std::vector<std::unique_ptr<Run>> runs;
  for (size_t next = 0; next < tasks.size() || !runs.empty();) {
    for (; next < tasks.size() && runs.size() < limits.parallel; ++next) {
      const Task& task = tasks[next];
      if (limits.stop_at_fail && failed[task.solution] != 0) continue;
      runs.push_back(std::make_unique<Run>(sandbox, limits, task, solutions[task.solution]));
    }
    if (runs.empty()) continue;
    exchange(runs);
    std::erase_if(runs, [&](const auto& run) {
      const Task& task = run->task();
      if (run->advance(passed[task.solution])) return false;
      if (!passed[task.solution][task.first_test]) failed[task.solution] = 1;
      return true;
    });
  }
  return passed;
}

}  // namespace sluice::nodes
