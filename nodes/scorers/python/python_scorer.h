#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "engine/contract/contract.h"
#include "engine/contract/node.h"
#include "nodes/scorers/failed_samples.h"
#include "nodes/scorers/python/python_reply.h"
#include "nodes/scorers/python/worker_pool.h"
#include "nodes/scorers/scored_samples.h"
#include "nodes/scorers/scorer.h"

namespace sluice::nodes {

/// Scores with a function of a Python file, in processes of its own.
///
///   [nodes.score]
///   type = "python_scorer"
///   inputs = ["generate"]
///   file = "reward.py"
///   function = "reward_func"     # default: reward_func, compute_score, or the one function of the file that could score
///   python = "python3"           # the interpreter, such as that of a virtual environment
///   workers = 1                  # processes; samples are shared out by whole groups
///   batch_size = 64              # the most samples that one process is given at once; default: all of its share
///   timeout_seconds = 60.0       # for one such batch
///   start_timeout_seconds = 120.0
///   data_source = ""             # what functions that ask for the data source are told
///   on_error = "fail"            # "skip", "value", see failed_samples.h
///
/// And the parameters of every scorer (scorer.h). The names of the function's parameters tell how it is called (docs/scorers.md):
/// as reward functions of OpenRLHF, verl, TRL and slime, or (prompt, response, label). What it prints goes to stderr, of which
/// the end is shown when a process dies.
///
/// Reads response[S], and prompt[G], label[G] and messages[G] where they are written; writes score[S]  (S: samples, G: groups).
/// Other numbers that the function returns are recorded as NODE/NAME, their mean. A function that raises, does not answer in time
/// (its process is killed), ends its process, writes into the channel to it, names a metric that cannot be one (metric_name.h),
/// or returns no finite number for each sample fails the samples that it was given: all of the batch, or one where it is called
/// for each sample. A file that cannot be loaded is a UserError before anything runs.
struct PythonScorerParams : ScorerParams, OnErrorParams {
  std::filesystem::path file;
  std::string function;
  std::string python = "python3";
  int64_t workers = 1;
  std::optional<int64_t> batch_size;
  double timeout_seconds = 60;
  double start_timeout_seconds = 120;
  std::string data_source;
};

class PythonScorer final : public engine::Node {
 public:
  static void describe(engine::Contract<PythonScorerParams>& contract);

  PythonScorer(const PythonScorerParams& params, engine::NodeResources& resources);

  void process(engine::MicroBatch& batch) override;

 private:
  std::string request(const ScoredSamples& samples, engine::Range range, int64_t iteration) const;
  void take(const PythonReply& answer, engine::Range range, ScoredTexts& texts, FailedSamples& failed);

  PythonScorerParams params_;
  std::string node_;
  uint64_t seed_;
  std::string function_;  // for messages: reward.py, function reward_func
  WorkerPool pool_;
  engine::MetricsRecorder& metrics_;
  engine::OutsideWork* const outside_;
};

}  // namespace sluice::nodes
