// How much longer than necessary does a pipeline take?
//
// Four stages that sleep, each on an executor of its own: 1, 2, 5 and 10 ms for 64 micro-batches, and random durations up to 2 ms
// for 1000. `ours` is the optimum (flow_shop.h, with the run's own token budget) divided by what the whole run took, its start
// and end included; 1 is perfect. Three lines each:
//   the optimum of the durations that were asked for: what timer and kernel add to a sleep counts against us;
//   "as slept": the optimum of the durations that the sleeps really took: what is missing there is the engine's;
//   "against bare threads": the first one beside what four threads with counters between them reach in turn, on the same machine.

#include <array>
#include <string>
#include <vector>

#include "bench/bare_threads.h"
#include "bench/bench_nodes.h"
#include "bench/flow_shop.h"
#include "bench/report.h"
#include "bench/world.h"

namespace sluice::bench {
namespace {

struct Question {
  std::string name;
  std::array<int64_t, kStages> sleep_us{};
  int64_t random_us = 0;
  int64_t micro_batches = 0;
  int64_t in_flight = 0;
  double goal = 0;
};

engine::PipelineBuilder stages(const Question& question) {
  engine::PipelineBuilder builder("stages", 1);
  builder.budget(question.in_flight, 1).set("runtime", "cores", static_cast<int64_t>(kStages));
  builder.node("numbers", "bench_numbers", {}, {{"groups_per_iteration", question.micro_batches}});
  std::string last = "numbers";
  for (size_t s = 0; s < kStages; ++s) {
    const std::string name = "stage" + std::to_string(s);
    builder.node(name, "bench_sleep", {last},
                 {{"sleep_us", question.sleep_us[s]}, {"random_us", question.random_us}, {"stage", static_cast<int64_t>(s)}},
                 "cpu:" + std::to_string(s));
    last = name;
  }
  return builder;
}

// How long each stage was at each micro-batch. Each row is written by one executor.
class SliceLog final : public engine::WorkObserver {
 public:
  SliceLog(const engine::Plan& plan, int64_t micro_batches) : first_stage_(plan.index_of("stage0")) {
    for (auto& row : taken_ms_) row.resize(static_cast<size_t>(micro_batches));
  }

  void ended(const engine::Slice& slice) override {
    if (slice.node < first_stage_ || slice.micro_batch < 0) return;
    const auto ns = static_cast<double>(slice.end_ns - slice.begin_ns);
    taken_ms_[static_cast<size_t>(slice.node - first_stage_)][static_cast<size_t>(slice.micro_batch)] = ns * 1e-6;
  }

  Durations durations() const {
    Durations durations(taken_ms_[0].size());
    for (size_t i = 0; i < durations.size(); ++i) {
      for (size_t s = 0; s < kStages; ++s) durations[i][s] = taken_ms_[s][i];
    }
    return durations;
  }

 private:
  const int first_stage_;
  std::array<std::vector<double>, kStages> taken_ms_;
};

Durations asked(const Question& question) {
  Durations durations(static_cast<size_t>(question.micro_batches));
  for (size_t i = 0; i < durations.size(); ++i) {
    for (size_t s = 0; s < kStages; ++s) {
      const double random =
          question.random_us > 0 ? slept_us(static_cast<int64_t>(s), static_cast<int64_t>(i), question.random_us) : 0;
      durations[i][s] = (static_cast<double>(question.sleep_us[s]) + random) * 1e-3;
    }
  }
  return durations;
}

void measure(const Question& question, int repetitions) {
  const World world(stages(question));
  Case nominal{.bench = "engine_efficiency", .name = question.name, .unit = "optimum / measured", .ours = {}, .reference = {1}};
  nominal.goal.ratio_at_least = question.goal;
  Case slept = nominal, bare = nominal;
  slept.name += ", as slept";
  bare.name += ", against bare threads", bare.reference.clear();
  const auto in_flight = static_cast<size_t>(question.in_flight);
  const Durations durations = asked(question);
  const double optimum_ms = makespan(durations, in_flight);
  for (int i = 0; i < repetitions; ++i) {
    SliceLog log(world.plan(), question.micro_batches);
    const double measured_ms = run(world, {.traced = true, .observers = {&log}}).seconds * 1e3;
    nominal.ours.push_back(optimum_ms / measured_ms);
    bare.ours.push_back(nominal.ours.back());
    bare.reference.push_back(optimum_ms / (bare_threads_seconds(durations, in_flight) * 1e3));
    slept.ours.push_back(makespan(log.durations(), in_flight) / measured_ms);
  }
  print(nominal);
  print(slept);
  print(bare);
}

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) {
  const bool smoke = sluice::bench::is_smoke(argc, argv);
  sluice::bench::measure({.name = "stages of 1, 2, 5, 10 ms",
                          .sleep_us = {1000, 2000, 5000, 10000},
                          .micro_batches = smoke ? 4 : 64,
                          .in_flight = 64,
                          .goal = 0.99},
                         smoke ? 1 : 9);
  sluice::bench::measure(
      {.name = "random stages up to 2 ms", .random_us = 2000, .micro_batches = smoke ? 40 : 1000, .in_flight = 32, .goal = 0.98},
      smoke ? 1 : 9);
}
