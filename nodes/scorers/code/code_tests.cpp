#include "nodes/scorers/code/code_tests.h"

#include <algorithm>
#include <chrono>
#include <limits>

#include "base/error.h"
#include "nodes/columns/columns.h"
#include "nodes/scorers/code/code_block.h"
#include "nodes/scorers/code/code_runs.h"
#include "nodes/scorers/milliseconds.h"

namespace sluice::nodes {
namespace {

constexpr int64_t kMb = 1 << 20;

Sandbox made(const CodeTestsParams& params, const std::string& node) {
  try {
    return Sandbox({.bubblewrap = params.bubblewrap, .python = params.python, .tmp_bytes = params.tmp_mb * kMb});
  } catch (const UserError& error) {
    const Problem& problem = error.problems().front();
    throw UserError("node '" + node + "': " + problem.message, problem.help);
  }
}

CodeLimits limits_of(const CodeTestsParams& params, size_t workers) {
  return {.timeout = milliseconds_of(params.timeout_seconds),
          .memory_bytes = params.memory_mb * kMb,
          .file_bytes = params.tmp_mb * kMb,
          .processes = params.processes,
          .output_bytes = static_cast<size_t>(params.output_kb) << 10,
          .parallel = workers,
          .stop_at_fail = params.score_by == ScoreBy::kAll};
}

auto problem_reader(const CodeTestsParams& params) {
  const auto most = static_cast<size_t>(params.most_tests.value_or(std::numeric_limits<int64_t>::max()));
  return [most](const std::string& label) { return parse_code_problem(label, most); };
}

}  // namespace

void CodeTests::describe(engine::Contract<CodeTestsParams>& c) {
  using P = CodeTestsParams;
  c.type("code_tests", "scores Python code by running it against tests, in sandboxes");
  c.param("score_by", &P::score_by).doc("all: 1 if every test passes, else 0, share: of the tests that pass");
  c.param("most_tests", &P::most_tests).at_least(1).doc("of each label, the first; unset: all");
  c.param("prelude", &P::prelude).doc("Python that is put before every solution, such as imports");
  c.param("python", &P::python).doc("the interpreter in the sandbox: a name in /usr or /bin, or a path");
  c.param("bubblewrap", &P::bubblewrap).doc("the program that makes sandboxes: a name in PATH or a path");
  c.param("workers", &P::workers)
      .between(1, 1024)
      .doc("runs side by side, of one sandbox each, or two for statements; unset: as many as the executor has cores");
  c.param("timeout_seconds", &P::timeout_seconds).above(0).unit("seconds").doc("for one test");
  c.param("memory_mb", &P::memory_mb).between(64, 1 << 20).unit("MiB").doc("address space of each process");
  c.param("tmp_mb", &P::tmp_mb).between(1, 1 << 20).unit("MiB").doc("size of /tmp, and of a file");
  c.param("processes", &P::processes).between(4, 4096).doc("processes and threads of a sandbox");
  c.param("output_kb", &P::output_kb)
      .between(1, 1 << 20)
      .unit("KiB")
      .doc("for one test: what a program may write to stdout, or a solution may answer; more fails it");
  describe_scorer(c);
  describe_labels(c, problem_reader);
  describe_score_metric(
      c, "tests_passed", engine::Metric::kMean,
      "mean share of the tests that pass; with score_by = \"all\" those after the first that fails may not run");
}

CodeTests::CodeTests(const CodeTestsParams& params, engine::NodeResources& resources)
    : params_(params),
      workers_(static_cast<size_t>(params.workers.value_or(std::max(1, resources.threads)))),
      sandbox_(made(params, resources.node)),
      metrics_(*resources.metrics),
      outside_(resources.outside) {}

void CodeTests::process(engine::MicroBatch& batch) {
  const std::vector<CodeProblem> problems = read_labels(batch, problem_reader(params_));  // [G]
  ScoredTexts texts(params_, batch);

  std::vector<CodeSolution> solutions;  // [S]
  for (size_t i = 0; i < texts.size(); ++i) {
    std::string code = code_of(texts.text(i));
    if (!code.empty() && !params_.prelude.empty()) code = params_.prelude + "\n" + code;
    solutions.push_back({std::move(code), &problems[texts.group_of(i)]});
  }

  const auto passed = run_code(sandbox_, limits_of(params_, workers_), solutions, {outside_, batch.iteration()});
  for (size_t i = 0; i < texts.size(); ++i) {
    const auto tests = static_cast<double>(passed[i].size());
    const double share = static_cast<double>(std::ranges::count(passed[i], true)) / tests;
    texts.score(i) = static_cast<float>(params_.score_by == ScoreBy::kShare ? share : share == 1 ? 1 : 0);
    metrics_.mean(texts.metric("tests_passed"), share);
  }
  texts.record(metrics_);
}

}  // namespace sluice::nodes
