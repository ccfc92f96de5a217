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

namespace sluice::bench {
namespace {

constexpr int64_t kBudget = 16384, kMicroBatch = 2048, kWorstSample = 32;

engine::PipelineBuilder toy(int64_t iterations, int64_t groups, int64_t samples, int64_t budget, int64_t micro_batch) {
  engine::PipelineBuilder builder("toy", iterations);
  builder.budget(budget, micro_batch).set("runtime", "cores", int64_t{2});
  builder.node("numbers", "bench_numbers", {}, {{"groups_per_iteration", groups}, {"samples_per_group", int64_t{0}}});
  builder.node("draw", "bench_draw", {"numbers"}, {{"samples_per_group", samples}, {"worst_sample_tokens", kWorstSample}});
  const auto derive = [&](const std::string& name, const std::vector<std::string>& inputs, const std::string& reads,
                          const std::string& on) {
    builder.node(name, "bench_derive", inputs, {{"reads", reads}, {"writes", name}}, on);
  };
  derive("reference", {"draw"}, "drawn", "cpu:1");
  derive("values", {"draw"}, "drawn", "cpu:1");
  derive("advantages", {"reference", "values"}, "values", "cpu:1");
  derive("train", {"advantages"}, "advantages", "cpu:1");
  return builder;
}

void resident(bool smoke) {
  const int64_t iterations = smoke ? 200 : 10000, early = iterations / 10;
  const World world(toy(iterations, 8, 4, 1024, 256));
  Case result{.bench = "engine_memory",
              .name = "resident after " + std::to_string(iterations) + " iterations, against " + std::to_string(early),
              .unit = "MB",
              .ours = {},
              .reference = {}};
  result.goal.ratio_at_most = 1.01;
  for (int i = 0; i < (smoke ? 1 : 3); ++i) {
    double at_first = 0, at_last = 0;
    run(world, {.traced = true, .on_iteration = [&](const engine::IterationReport& report) {
                  if (report.iteration + 1 == early) at_first = report.figure("resident_bytes") * 1e-6;
                  at_last = report.figure("resident_bytes") * 1e-6;
                }});
    result.ours.push_back(at_last), result.reference.push_back(at_first);
  }
  print(result);
}

struct Peaks {
  double tokens = 0;
  double column_kilobytes = 0;
};

// The same number of samples whatever the group size, several times what the budget holds.
Peaks peaks(int64_t samples, bool smoke) {
  const int64_t groups = 4 * kBudget / kWorstSample / samples;
  const World world(toy(smoke ? 1 : 20, groups, samples, kBudget, kMicroBatch));
  Peaks peaks;
  run(world, {.on_iteration = [&](const engine::IterationReport& report) {
        peaks.tokens = std::max(peaks.tokens, report.figure("tokens_in_flight_max"));
        peaks.column_kilobytes = std::max(peaks.column_kilobytes, report.figure("column_bytes_max") * 1e-3);
      }});
  return peaks;
}

void growth(int64_t samples, bool smoke) {
  const std::string against = std::to_string(samples) + " samples a prompt, against 8: ";
  Case tokens{.bench = "engine_memory", .name = against + "tokens in flight", .unit = "tokens", .ours = {}, .reference = {}};
  Case bytes{.bench = "engine_memory", .name = against + "column bytes", .unit = "kB", .ours = {}, .reference = {}};
  tokens.goal.ratio_at_most = bytes.goal.ratio_at_most = 1.05;
  for (int i = 0; i < (smoke ? 1 : 7); ++i) {
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
