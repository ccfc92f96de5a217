#include "nodes/scorers/code/code_run.h"

#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/json/json.h"
#include "base/text/strings.h"
#include "nodes/columns/column_json.h"
#include "nodes/scorers/code/code_answers.h"
#include "nodes/scorers/embedded.h"
#include "nodes/scorers/exact_json.h"

namespace sluice::nodes {
namespace {

constexpr std::chrono::milliseconds kStartTime{60'000};
constexpr std::string_view kStarted = "started", kLoaded = "loaded";
constexpr size_t kSaid = 32;  // bytes of such words
constexpr size_t kMostOfJudge = 64 << 20;

Sandbox::File file(const char* name, std::string_view content) { return {std::string("/sandbox/") + name, std::string(content)}; }

std::unique_ptr<Subprocess> start_solution(const Sandbox& sandbox, const std::string& limits, const char* mode,
                                           const std::string& code, size_t most_output) {
  return sandbox.start({"/sandbox/runner.py", limits, mode},
                       {file("runner.py", embedded::kCodeRunner), file("sluice_values.py", embedded::kCodeValues),
                        file("sluice_server.py", embedded::kCodeServer), file("solution.py", code)},
                       most_output);
}

// A program, once, with one input.
class ProgramRun final : public CodeRun {
 public:
  ProgramRun(const Sandbox& sandbox, const CodeLimits& limits, const CodeTask& task, const CodeSolution& solution)
      : CodeRun(limits, task),
        expected_(solution.problem->outputs[task.first_test]),
        process_(start_solution(sandbox, limits_text(), "program", solution.code, limits.output_bytes + kStarted.size() + 1)) {
    process_->send(solution.problem->inputs[task.first_test]);
    process_->end_input();
  }

  std::vector<Subprocess*> processes() const override { return {process_.get()}; }

  bool advance(std::vector<bool>& passed) override {
    if (!all_started()) return true;
    if (process_->succeeded() && !process_->overflowed()) {
      const std::string output = process_->take_output();
      passed[task().first_test] = output.size() <= limits_.output_bytes && same_output(output, expected_);
    }
    return !process_->ended() && !process_->overflowed() && !late();
  }

 private:
  const std::string& expected_;
  std::unique_ptr<Subprocess> process_;
};

// Calls of a function, one after the other in one process.
class CallsRun final : public CodeRun {
 public:
  CallsRun(const Sandbox& sandbox, const CodeLimits& limits, const CodeTask& task, const CodeSolution& solution)
      : CodeRun(limits, task),
        problem_(*solution.problem),
        process_(start_solution(sandbox, limits_text(), "calls", solution.code, (limits.output_bytes + 1) * task.tests + kSaid)) {
    process_->send(text_of_exact(Json{{"function", problem_.function}, {"arguments", problem_.arguments}}) + "\n");
    process_->end_input();
  }

  std::vector<Subprocess*> processes() const override { return {process_.get()}; }

  bool advance(std::vector<bool>& passed) override {
    if (!all_started()) return true;
    while (const auto line = process_->take_line()) {
      next_deadline();
      if (!std::exchange(loaded_, true)) continue;
      const Json value = line->size() <= limits_.output_bytes ? exact_json(*line) : Json(Json::value_t::discarded);
      passed[answered_] = !value.is_discarded() && same_value(value, problem_.values[answered_]);
      if (++answered_ == task().tests || (limits_.stop_at_fail && !passed[answered_ - 1])) return false;
    }
    return !process_->ended() && !process_->overflowed() && !late();
  }

 private:
  const CodeProblem& problem_;
  std::unique_ptr<Subprocess> process_;
  bool loaded_ = false;
  size_t answered_ = 0;  // tests
};

// Statements, in a process that the solution cannot reach: it asks, line by line, for what it needs of the solution.
class StatementsRun final : public CodeRun {
 public:
  StatementsRun(const Sandbox& sandbox, const CodeLimits& limits, const CodeTask& task, const CodeSolution& solution)
      : CodeRun(limits, task),
        problem_(*solution.problem),
        solution_(start_solution(sandbox, limits_text(), "serve", solution.code, limits.output_bytes + kSaid)),
        judge_(sandbox.start({"/sandbox/judge.py", limits_text()},
                             {file("judge.py", embedded::kCodeJudge), file("runner.py", embedded::kCodeRunner),
                              file("sluice_values.py", embedded::kCodeValues)},
                             kMostOfJudge)) {}

  std::vector<Subprocess*> processes() const override { return {solution_.get(), judge_.get()}; }

  bool advance(std::vector<bool>& passed) override {
    if (!all_started()) return true;
    if (!loaded_ && !take_loaded()) return !solution_->ended() && !solution_->overflowed() && !late();
    while (take_of_judge(passed) || take_of_solution()) {
      if (over_) return false;
    }
    return !over_ && !judge_->ended() && !judge_->overflowed() && !solution_->overflowed() && !late();
  }

 private:
  bool take_loaded() {
    loaded_ = solution_->take_line() == kLoaded;
    if (!loaded_) return false;
    next_deadline();
    judge_->send(dump_json(Json{{"tests", problem_.statements}}) + "\n");
    return true;
  }

  // What the judge says: a verdict, or a question for the solution.
  bool take_of_judge(std::vector<bool>& passed) {
    const auto line = judge_->take_line();
    if (!line) return false;
    constexpr std::string_view kAsk = "ask ";
    if (line->starts_with(kAsk)) {
      asked_ = true;
      solution_->send(line->substr(kAsk.size()) + "\n");
      return true;
    }
    passed[answered_] = *line == "passed";
    over_ = ++answered_ == task().tests || (limits_.stop_at_fail && !passed[answered_ - 1]);
    written_ = 0;
    next_deadline();
    return true;
  }

  // What the solution answers. What it says without being asked stays where it is, and runs into the limit of its output.
  bool take_of_solution() {
    if (!asked_) return false;
    const auto line = solution_->take_line();
    if (!line && !solution_->ended()) return false;
    asked_ = false;
    written_ += line ? line->size() + 1 : 0;
    over_ |= written_ > limits_.output_bytes;
    judge_->send(line ? *line + "\n" : "\"gone\"\n");
    return true;
  }

  const CodeProblem& problem_;
  std::unique_ptr<Subprocess> solution_, judge_;
  bool loaded_ = false;
  bool asked_ = false;  // the judge waits for the solution
  bool over_ = false;
  size_t answered_ = 0;  // tests
  size_t written_ = 0;   // bytes that the solution has answered in this test
};

}  // namespace

CodeRun::CodeRun(const CodeLimits& limits, const CodeTask& task)
    : limits_(limits), task_(task), deadline_(Clock::now() + kStartTime) {}

bool CodeRun::all_started() {
  const std::vector<Subprocess*> all = processes();
  if (started_ == all.size()) return true;
  for (; started_ < all.size(); ++started_) {
    Subprocess& process = *all[started_];
    if (process.take_line() == kStarted) continue;
    if (!process.ended() && !late()) return false;
    const std::string said(trim(process.errors()));
    const std::string end = process.ended() ? "it " + process.how_it_ended() : "nothing came of it";
    throw UserError("a sandbox could not be started: " + (said.empty() ? end : said));
  }
  next_deadline();
  return true;
}

std::string CodeRun::limits_text() const {
  const int64_t seconds = (limits_.timeout.count() + 999) / 1000 * static_cast<int64_t>(task_.tests) + 1;
  return Json{{"RLIMIT_CPU", seconds},
              {"RLIMIT_AS", limits_.memory_bytes},
              {"RLIMIT_FSIZE", limits_.file_bytes},
              {"RLIMIT_NPROC", limits_.processes},
              {"RLIMIT_NOFILE", 256},
              {"RLIMIT_CORE", 0}}
      .dump();
}

std::unique_ptr<CodeRun> start_run(const Sandbox& sandbox, const CodeLimits& limits, const CodeTask& task,
                                   const CodeSolution& solution) {
  if (solution.problem->of_program()) return std::make_unique<ProgramRun>(sandbox, limits, task, solution);
  if (!solution.problem->function.empty()) return std::make_unique<CallsRun>(sandbox, limits, task, solution);
  return std::make_unique<StatementsRun>(sandbox, limits, task, solution);
}

}  // namespace sluice::nodes
