#include "nodes/scorers/python/python_scorer.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "base/error.h"
#include "base/json/json.h"
#include "base/text/strings.h"
#include "nodes/columns/column_json.h"
#include "nodes/scorers/embedded.h"
#include "nodes/scorers/milliseconds.h"
#include "nodes/scorers/python/python_reply.h"

extern char** environ;

namespace sluice::nodes {
namespace {

// With the order of sets and dictionaries fixed, and without compiled files beside the user's.
std::vector<std::string> environment() {
  std::vector<std::string> all{"PYTHONHASHSEED=0", "PYTHONDONTWRITEBYTECODE=1"};
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    if (!text.starts_with("PYTHONHASHSEED=") && !text.starts_with("PYTHONDONTWRITEBYTECODE=")) all.emplace_back(text);
  }
  return all;
}

WorkerPoolOptions pool_options(const PythonScorerParams& params, std::string& function) {
  WorkerPoolOptions options;
  options.command.arguments = {
      params.python, "-c", std::string(embedded::kPythonWorker), params.file.string(), params.function, params.data_source};
  options.command.environment = environment();
  options.workers = static_cast<size_t>(params.workers);
  options.start_timeout = milliseconds_of(params.start_timeout_seconds);
  options.timeout = milliseconds_of(params.timeout_seconds);
  const std::string file = params.file.filename().string();
  options.greeted = [&function, file](const std::string& line) {
    try {
      function = file + ", function " + parse_python_greeting(line);
    } catch (const UserError& error) {
      throw UserError(file + ": " + error.message(), error.help());
    }
  };
  return options;
}

WorkerPool started(const PythonScorerParams& params, const std::string& node, std::string& function) {
  try {
    return WorkerPool(pool_options(params, function));
  } catch (const UserError& error) {
    const Problem& problem = error.problems().front();
    std::string_view message = problem.message;  // may begin with the file's name, which its path says again
    if (const std::string file = params.file.filename().string() + ": "; message.starts_with(file))
      message.remove_prefix(file.size());
    throw UserError("node '" + node + "', " + params.file.string() + ": " + std::string(message), problem.help);
  }
}

// Whole groups to each worker; less at once where a batch is limited.
std::vector<engine::Range> shares(const ScoredTexts& texts, size_t workers, size_t most) {
  std::vector<engine::Range> ranges;
  const size_t groups = texts.size() == 0 ? 0 : texts.group_of(texts.size() - 1) + 1;
  for (size_t w = 0, begin = 0; w < workers; ++w) {
    size_t end = begin;
    while (end < texts.size() && texts.group_of(end) < (w + 1) * groups / workers) ++end;
    for (; begin < end; begin = ranges.back().end) ranges.push_back({begin, std::min(end, begin + std::min(most, end - begin))});
  }
  return ranges;
}

}  // namespace

void PythonScorer::describe(engine::Contract<PythonScorerParams>& c) {
  using P = PythonScorerParams;
  c.type("python_scorer", "scores with a function of a Python file, in processes of its own");
  c.param("file", &P::file).required().must_exist().doc("the Python file");
  c.param("function", &P::function)
      .doc("its function that scores; empty: reward_func, compute_score, or the one function that could score");
  c.param("python", &P::python).doc("the interpreter: a name in PATH or a path, such as that of a virtual environment");
  c.param("workers", &P::workers).between(1, 1024).doc("processes that score side by side; each gets whole groups");
  c.param("batch_size", &P::batch_size)
      .at_least(1)
      .unit("samples")
      .doc("the most samples that the function is given at once; unset: all of a process's share of the micro-batch");
  c.param("timeout_seconds", &P::timeout_seconds)
      .above(0)
      .harmless()
      .unit("seconds")
      .doc("for one such batch; then the process is killed");
  c.param("start_timeout_seconds", &P::start_timeout_seconds)
      .above(0)
      .harmless()
      .unit("seconds")
      .doc("for a process to load the file");
  c.param("data_source", &P::data_source).doc("what functions with a parameter data_source are told");
  describe_on_error(c);
  describe_scorer(c);
  c.reads_if_written(columns::kPrompt, columns::kLabel, columns::kMessages);
  c.metric_family("reward/NODE/", "means of the other metrics that the function returns or logs");
}

PythonScorer::PythonScorer(const PythonScorerParams& params, engine::NodeResources& resources)
    : params_(params),
      node_(resources.node),
      seed_(resources.seed),
      pool_(started(params_, node_, function_)),
      metrics_(*resources.metrics),
      outside_(resources.outside) {}

void PythonScorer::process(engine::MicroBatch& batch) {
  ScoredTexts texts(params_, batch);
  const ScoredSamples samples(texts, batch);
  const size_t most = params_.batch_size ? static_cast<size_t>(*params_.batch_size) : std::max<size_t>(texts.size(), 1);
  const std::vector<engine::Range> ranges = shares(texts, static_cast<size_t>(params_.workers), most);
  std::vector<std::string> requests;
  for (const engine::Range range : ranges) requests.push_back(request(samples, range, batch.iteration()));

  std::vector<PythonReply> answers(ranges.size());
  const std::vector<WorkerReply> replies =
      pool_.ask(requests, [&](size_t r, const std::string& line) { answers[r] = parse_python_reply(line, ranges[r].size()); },
                {outside_, batch.iteration()});
  FailedSamples failed;
  for (size_t r = 0; r < ranges.size(); ++r) {
    if (!replies[r].failure.empty()) answers[r].failure = "its process " + replies[r].failure;
    take(answers[r], ranges[r], texts, failed);
  }
  failed.settle(params_, node_, batch, texts, metrics_);
  texts.record(metrics_);
}

std::string PythonScorer::request(const ScoredSamples& samples, engine::Range range, int64_t iteration) const {
  return dump_json(Json{{"seed", seed_},
                        {"iteration", iteration},
                        {"groups", entries_to_json(samples.groups, range)},
                        {"places", entries_to_json(samples.places, range)},
                        {"prompts", entries_to_json(samples.prompts, range)},
                        {"responses", entries_to_json(samples.responses, range)},
                        {"labels", entries_to_json(samples.labels, range)},
                        {"messages", entries_to_json(samples.messages, range)}});
}

void PythonScorer::take(const PythonReply& answer, engine::Range range, ScoredTexts& texts, FailedSamples& failed) {
  if (!answer.failure.empty()) {
    for (size_t i = range.begin; i < range.end; ++i) failed.add(i, function_ + ": " + answer.failure);
    return;
  }
  for (size_t i = 0; i < range.size(); ++i) texts.score(range.begin + i) = answer.scores[i];
  for (const auto& [sample, what] : answer.errors) failed.add(range.begin + sample, function_ + ": " + what);
  for (const auto& [name, value] : answer.metrics) metrics_.mean("reward/" + node_ + "/" + name, value);
}

}  // namespace sluice::nodes
