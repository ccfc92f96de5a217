#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/contract/contract.h"
#include "engine/contract/node.h"
#include "nodes/scorers/code/code_problem.h"
#include "nodes/scorers/code/sandbox.h"
#include "nodes/scorers/scorer.h"

namespace sluice::nodes {

enum class ScoreBy {
  kAll,    // 1 if every test passes, else 0
  kShare,  // the share of the tests that pass
};

constexpr auto enum_names(ScoreBy) { return std::array{std::pair{ScoreBy::kAll, "all"}, std::pair{ScoreBy::kShare, "share"}}; }

/// Scores Python code by running it against tests, each sample in a sandbox.
///
///   [nodes.score]
///   type = "code_tests"
///   inputs = ["generate"]
///   score_by = "all"             # "share": of the tests that pass
///   most_tests = 20              # of each label, the first; default: all
///   prelude = "from typing import *"   # put before every solution
///   python = "python3"           # in the sandbox: a name in /usr or /bin, or a path, such as that of a virtual environment
///   bubblewrap = "bwrap"
///   workers = 4                  # runs side by side; default: the cores of the executor
///   timeout_seconds = 10.0       # for one test
///   memory_mb = 1024             # of address space, for each process
///   tmp_mb = 64                  # of /tmp, and of a file
///   processes = 32               # and threads
///   output_kb = 1024             # for one test: what a program writes to stdout, or a solution answers
///
/// And the parameters of every scorer (scorer.h). Reads response[S], label[G]; writes score[S]  (S: samples, G: groups). The code
/// is that of code_of(), the label that of CodeProblem. Metric: tests_passed, the mean share of the tests that pass (with
/// score_by = "all" tests after the first that fails may not be run, and count as failed).
///
/// A program must end by itself with exit code 0 and have written what it should. Statements and calls of a sample run one after
/// the other, with one process for the solution: one that ends it, takes too long or writes too much fails those after it too.
/// Nothing is judged in a process that the solution can reach (code_run.h); what that means for statements is in docs/scorers.md.
/// What a solution does, or fails to do, costs it its score and nothing else. A label without tests is a UserError that names the
/// group; so is, before anything runs, a machine on which the sandbox does not work (sandbox.h).
struct CodeTestsParams : ScorerParams {
  ScoreBy score_by = ScoreBy::kAll;
  std::optional<int64_t> most_tests;
  std::string prelude;
  std::string python = "python3";
  std::string bubblewrap = "bwrap";
  std::optional<int64_t> workers;
  double timeout_seconds = 10;
  int64_t memory_mb = 1024;
  int64_t tmp_mb = 64;
  int64_t processes = 32;
  int64_t output_kb = 1024;
};

class CodeTests final : public engine::Node {
 public:
  static void describe(engine::Contract<CodeTestsParams>& contract);

  CodeTests(const CodeTestsParams& params, engine::NodeResources& resources);

  void process(engine::MicroBatch& batch) override;

 private:
  CodeTestsParams params_;
  size_t workers_;
  Sandbox sandbox_;
  engine::MetricsRecorder& metrics_;
  engine::OutsideWork* const outside_;
};

}  // namespace sluice::nodes
