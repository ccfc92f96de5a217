#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/numbers/random.h"
#include "engine/simulation/simulation.h"
#include "tests/engine/simulation_world.h"

namespace sluice::engine::simulation_chain_test {
namespace {

/// A rollout and a chain of nodes after it, each on one of two executors, with whole microseconds as costs.
struct Chain {
  struct Stage {
    int place = 0;  // 0: "cpu", 1: "cpu:1"
    int64_t batch_us = 1, end_us = 1;
  };

  int64_t iterations = 1, groups = 1, response = 1, step_us = 1;
  int rollout_place = 0;
  std::vector<Stage> stages;
};

Chain random_chain(uint64_t seed) {
  RandomStream random(seed, 0);
  const auto from_one_to = [&](uint64_t most) { return 1 + static_cast<int64_t>(random.below(most)); };
  Chain chain{.iterations = from_one_to(5), .groups = from_one_to(4), .response = from_one_to(3), .step_us = from_one_to(9)};
  chain.rollout_place = static_cast<int>(random.below(2));
  for (int64_t count = from_one_to(4); count > 0; --count) {
    chain.stages.push_back({static_cast<int>(random.below(2)), from_one_to(20), from_one_to(20)});
  }
  return chain;
}

/// List scheduling, microsecond by microsecond: each place takes the packet of the latest stage, then the oldest, and decodes
/// when no packet is there. Knows nothing of the engine.
int64_t scheduled_us(const Chain& chain) {
  const int64_t packets = chain.groups + 1;  // of an iteration; the last is its end
  const auto stages = static_cast<int64_t>(chain.stages.size());
  std::vector<int64_t> arrived(chain.stages.size() + 1), begun(chain.stages.size());  // packets, by stage
  struct Job {
    int64_t stage;  // -1: a step
    int64_t until;
  };
  std::optional<Job> jobs[2];
  int64_t sampled = 0, steps = 0, last = 0;  // iterations, steps in the one at hand
  for (int64_t now = 0;; ++now) {
    for (auto& job : jobs) {
      if (!job || job->until != now) continue;
      last = now;
      if (job->stage >= 0) {
        ++arrived[static_cast<size_t>(job->stage) + 1];
      } else if (++steps == chain.response) {
        steps = 0, ++sampled;
        arrived[0] += packets;
      }
      job.reset();
    }
    const int64_t reported = arrived.back() / packets;
    bool busy = false;
    for (int place = 0; place < 2; ++place) {
      for (int64_t stage = stages - 1; stage >= 0 && !jobs[place]; --stage) {
        const auto s = static_cast<size_t>(stage);
        if (chain.stages[s].place != place || begun[s] == arrived[s]) continue;
        const bool ends = ++begun[s] % packets == 0;
        jobs[place] = {stage, now + (ends ? chain.stages[s].end_us : chain.stages[s].batch_us)};
      }
      const bool may_step = sampled < chain.iterations && (steps > 0 || sampled < reported + 2);
      if (!jobs[place] && place == chain.rollout_place && may_step) jobs[place] = {-1, now + chain.step_us};
      busy = busy || jobs[place];
    }
    if (!busy) return last;
  }
}

testing::ToyPlan plan_of(const Chain& chain) {
  const char* const places[] = {"cpu", "cpu:1"};
  PipelineBuilder builder = testing::toy_pipeline(chain.iterations, chain.groups, 1000, places[chain.rollout_place]);
  std::string input = "rollout";
  for (size_t i = 0; i < chain.stages.size(); ++i) {
    const std::string name = "mix" + std::to_string(i);
    testing::add_mix(builder, name, input, places[chain.stages[i].place]);
    input = name;
  }
  return testing::toy_plan(builder);
}

TEST(SimulatedChain, TakesAsLongAsListSchedulingSays) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    const Chain chain = random_chain(seed);
    Costs costs = testing::costs_with_lengths(1, chain.response);
    costs.nodes["source"] = {};
    costs.nodes["rollout"] = {.per_step_us = static_cast<double>(chain.step_us)};
    for (size_t i = 0; i < chain.stages.size(); ++i) {
      costs.nodes["mix" + std::to_string(i)] = {.per_batch_us = static_cast<double>(chain.stages[i].batch_us),
                                                .per_iteration_us = static_cast<double>(chain.stages[i].end_us)};
    }
    const testing::ToyPlan toys = plan_of(chain);
    EXPECT_EQ(std::llround(simulate(toys.plan, testing::on_the_cores_of(toys.plan, costs)).seconds * 1e6), scheduled_us(chain));
  }
}

}  // namespace
}  // namespace sluice::engine::simulation_chain_test
