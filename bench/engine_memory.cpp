// Does memory stay where it is?
//
// "resident": resident memory of the process at iteration 10,000 against iteration 1,000 of one run with its run folder. "tokens"
// and "column bytes": their peaks with 16, 32 and 64 samples a prompt against 8, under one token budget; the key-value cache of a
// real rollout is as large as the tokens of its running samples. The toy pipeline draws samples of hashed lengths, derives three
// columns in two branches and joins them.

#include <algorithm>
#include <string>

#include "bench/report.h"
#include "bench/world.h"
#include "engine/observe/engine_metrics.h"

namespace sluice::bench {
namespace {

constexpr int64_t kBudget = 65536, kMicroBatch = 2048, kWorstSample = 32;

struct Toy {
  int64_t iterations = 1, groups = 1, samples = 1, budget = 0, micro_batch = 0;
  int64_t train_us = 0;
};

engine::PipelineBuilder pipeline_of(const Toy& toy) {
  using Params = engine::PipelineBuilder::Params;
  engine::PipelineBuilder builder("toy", toy.iterations);
  builder.budget(toy.budget, toy.micro_batch).set("runtime", "cores", int64_t{2});
  builder.node("numbers", "bench_numbers", {}, {{"groups_per_iteration", toy.groups}, {"samples_per_group", int64_t{0}}});
  builder.node("draw", "bench_draw", {"numbers"}, {{"samples_per_group", toy.samples}, {"worst_sample_tokens", kWorstSample}});
  const auto derive = [&](const std::string& name, const std::vector<std::string>& inputs, const std::string& reads,
                          int64_t sleep_us = 0) {
    const Params params{{"reads", reads}, {"writes", name}, {"sleep_us", sleep_us}};
    builder.node(name, "bench_derive", inputs, params, "cpu:1");
  };
  derive("reference", {"draw"}, "drawn");
  derive("values", {"draw"}, "drawn");
  derive("advantages", {"reference", "values"}, "values");
  derive("train", {"advantages"}, "advantages", toy.train_us);
  return builder;
}

void resident(bool smoke) {
  const int64_t iterations = smoke ? 200 : 10000, early = iterations / 10;
  const World world(pipeline_of({.iterations = iterations, .groups = 8, .samples = 4, .budget = 1024, .micro_batch = 256}));
  Case result{.bench = "engine_memory",
              .name = "resident after " + std::to_string(iterations) + " iterations, against " + std::to_string(early),
              .unit = "MB",
              .ours = {},
              .reference = {}};
  result.goal.ratio_at_most = 1.01;
  for (int i = 0; i < (smoke ? 1 : 3); ++i) {
    double at_first = 0, at_last = 0;
    run(world, {.traced = true, .on_iteration = [&](const engine::IterationReport& report) {
                  if (report.iteration + 1 == early) at_first = report.metric(engine::metrics::kResidentBytes) * 1e-6;
                  at_last = report.metric(engine::metrics::kResidentBytes) * 1e-6;
                }});
    result.ours.push_back(at_last), result.reference.push_back(at_first);
  }
  print(result);
}

struct Peaks {
  double tokens = 0;
  double column_kilobytes = 0;
};

// The same number of samples whatever the group size, several times what the budget holds; training is slow, so that the budget
// is full.
Peaks peaks(int64_t samples, bool smoke) {
  const int64_t groups = 4 * kBudget / kWorstSample / samples;
  const World world(pipeline_of({.iterations = smoke ? 1 : 5,
                                 .groups = groups,
                                 .samples = samples,
                                 .budget = kBudget,
                                 .micro_batch = kMicroBatch,
                                 .train_us = 1000}));
  Peaks peaks;
  run(world, {.on_iteration = [&](const engine::IterationReport& report) {
        peaks.tokens = std::max(peaks.tokens, report.metric(engine::metrics::kTokensInFlightMax));
        peaks.column_kilobytes = std::max(peaks.column_kilobytes, report.metric(engine::metrics::kColumnBytesMax) * 1e-3);
      }});
  return peaks;
}

void growth(int64_t samples, bool smoke) {
  const std::string against = std::to_string(samples) + " samples a prompt, against 8: ";
  Case tokens{.bench = "engine_memory", .name = against + "tokens in flight", .unit = "tokens", .ours = {}, .reference = {}};
  Case bytes{.bench = "engine_memory", .name = against + "column bytes", .unit = "kB", .ours = {}, .reference = {}};
  tokens.goal.ratio_at_most = bytes.goal.ratio_at_most = 1.05;
  for (int i = 0; i < (smoke ? 1 : 5); ++i) {
    const Peaks many = peaks(samples, smoke), few = peaks(8, smoke);
    tokens.ours.push_back(many.tokens), tokens.reference.push_back(few.tokens);
    bytes.ours.push_back(many.column_kilobytes), bytes.reference.push_back(few.column_kilobytes);
  }
  print(tokens);
  print(bytes);
}

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) {
  const bool smoke = sluice::bench::is_smoke(argc, argv);
  sluice::bench::resident(smoke);
  for (const int64_t samples : {16, 32, 64}) sluice::bench::growth(samples, smoke);
}
