#include "tests/engine/random_world.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "engine/contract/pipeline_builder.h"
#include "engine/plan/plan.h"

namespace sluice::engine::toy {
namespace {

/// Builds worlds step by step: knows what is alive behind each node.
class WorldBuilder {
 public:
  explicit WorldBuilder(uint64_t seed) : random_(seed, 0) {}

  World build() {
    world_.iterations = 1 + below(5);
    world_.groups = 1 + below(9);
    world_.samples = 1 + below(3);
    world_.worst = 3 + below(6);
    world_.trained = below(4) > 0;
    world_.rollout_on = any_of_these<std::string>({"cpu", "cpu:1"}, random_);
    places_["rollout"] = {.columns = {"drawn"}, .stream = "", .behind_barrier = false};
    const int64_t count = 1 + below(6);
    for (int64_t i = 0; i < count; ++i) add_step(i);
    const World::Step last = world_.steps.back();
    world_.train_input = last.name;
    const std::set<std::string>& alive = places_[last.name].columns;
    world_.trained_column = last.filters() ? *alive.rbegin() : last.name;
    if (world_.trained) world_.lag = below(3);
    world_.spare = below(3) == 0 ? 0 : below(2 * world_.samples * world_.worst);
    world_.micro_batch = world_.samples * world_.worst * (1 + below(3));
    world_.on_demand = below(2) == 0;
    return world_;
  }

 private:
  struct Place {
    std::set<std::string> columns;
    std::string stream;
    bool behind_barrier = false;
  };

  int64_t below(int64_t bound) { return static_cast<int64_t>(random_.below(static_cast<uint64_t>(bound))); }

  // Only nodes behind the same filters may be joined.
  void add_step(int64_t number) {
    World::Step step;
    std::vector<std::string> names;
    for (const auto& [name, place] : places_) names.push_back(name);
    std::set<std::string> inputs{any_of_these(names, random_)};
    step.stream = places_[*inputs.begin()].stream;
    std::erase_if(names, [&](const std::string& name) { return places_[name].stream != step.stream; });
    for (int64_t k = below(3); k > 0; --k) inputs.insert(any_of_these(names, random_));
    step.inputs.assign(inputs.begin(), inputs.end());
    Place place{.columns = {}, .stream = step.stream, .behind_barrier = false};
    for (const std::string& input : inputs) {
      place.columns.insert(places_[input].columns.begin(), places_[input].columns.end());
      place.behind_barrier |= places_[input].behind_barrier;
    }
    const std::vector<std::string> choices(place.columns.begin(), place.columns.end());
    std::set<std::string> reads;
    for (int64_t k = below(3); k >= 0; --k) reads.insert(any_of_these(choices, random_));
    step.reads.assign(reads.begin(), reads.end());
    step.on = any_of_these<std::string>({"cpu", "cpu:1"}, random_);
    if (below(4) == 0) {
      make_filter(step, number, place);
    } else {
      step.name = "mix" + std::to_string(number);
      step.barrier = below(5) == 0;
      place.behind_barrier |= step.barrier;
      place.columns.insert(step.name);
    }
    places_[step.name] = place;
    world_.steps.push_back(std::move(step));
  }

  void make_filter(World::Step& step, int64_t number, Place& place) {
    step.name = "filter" + std::to_string(number);
    step.drop_one_in = 1 + below(4);
    place.stream = step.name;
    if (refills_ || place.behind_barrier || below(3) == 0) return;
    refills_ = step.refills = true;
    world_.most_draws = 2 + below(3);
    world_.oversample = 1 + 0.5 * static_cast<double>(below(3));
  }

  RandomStream random_;
  World world_;
  std::map<std::string, Place> places_;  // behind each node
  bool refills_ = false;
};

Array array_of(const std::vector<std::string>& names) {
  Array array;
  for (const std::string& name : names) array.push_back({.data = name, .where = {}, .base = {}});
  return array;
}

std::vector<std::string> inputs_of(const World::Step& step, const std::string& prefix) {
  std::vector<std::string> inputs;
  for (const std::string& name : step.inputs) inputs.push_back(prefix + name);
  return inputs;
}

PipelineBuilder begin_pipeline(const World& world, uint64_t seed, int64_t budget) {
  PipelineBuilder builder("world", world.iterations);
  builder.budget(budget, world.micro_batch)
      .set("pipeline", "seed", static_cast<int64_t>(seed))
      .set("runtime", "cores", int64_t{2});
  builder.set("runtime", "stall_seconds", 5.0);
  if (world.on_demand) builder.set("budget", "admission", std::string("on_demand"));
  if (world.lag > 0) builder.set("schedule", "policy_lag", world.lag);
  return builder;
}

PipelineBuilder::Params source_params_of(const World& world) {
  PipelineBuilder::Params params{{"groups_per_iteration", world.groups}};
  if (world.every_iterations) params.emplace_back("every_iterations", *world.every_iterations);
  if (world.before_training) params.emplace_back("before_training", true);
  if (world.share > 0) params.emplace_back("tokens_in_flight", world.share);
  return params;
}

void add_path(PipelineBuilder& builder, const World& world, int64_t pause_us) {
  const std::string& prefix = world.prefix;
  PipelineBuilder::Params rollout{
      {"samples_per_group", world.samples}, {"worst_sample_tokens", world.worst}, {"pause_us", pause_us}};
  if (const std::string model = world.sampled_model(); !model.empty()) rollout.emplace_back("model", model);
  builder.node(world.source(), "toy_source", {}, source_params_of(world));
  builder.node(prefix + "rollout", "toy_rollout", {world.source()}, rollout, world.rollout_on);
  for (const World::Step& step : world.steps) {
    PipelineBuilder::Params params{{"reads", array_of(step.reads)}};
    if (step.filters()) {
      params.emplace_back("drop_one_in", step.drop_one_in);
      if (step.refills) params.emplace_back("most_draws", world.most_draws), params.emplace_back("oversample", world.oversample);
    } else {
      params.emplace_back("writes", step.name), params.emplace_back("barrier", step.barrier),
          params.emplace_back("pause_us", pause_us);
      if (world.remembers) params.emplace_back("remembers", true);
    }
    builder.node(prefix + step.name, step.filters() ? "toy_filter" : "toy_mix", inputs_of(step, prefix), params, step.on);
  }
  if (!world.trained) return;
  builder.model(world.model(), {});
  builder.node(prefix + "train", "toy_train", {prefix + world.train_input},
               {{"model", world.model()}, {"reads", world.trained_column}});
  builder.node(prefix + "publish", "toy_publish", {prefix + "train"}, {{"model", world.model()}});
}

}  // namespace

World random_world(uint64_t seed) { return WorldBuilder(seed).build(); }

// The others run as long as the main one, and have its micro-batches at least.
Worlds random_worlds(uint64_t seed) {
  RandomStream random(seed, 7);
  Worlds worlds{.main = random_world(seed), .others = {}};
  const uint64_t others = random.below(3);
  for (uint64_t i = 0; i < others; ++i) {
    World other = random_world(seed * 3 + i + 1000000);
    other.prefix = "p" + std::to_string(i) + "_";
    other.iterations = worlds.main.iterations;
    other.lag = worlds.main.lag;
    if (random.below(3) > 0) {
      if (random.below(4) > 0) other.every_iterations = 1 + static_cast<int64_t>(random.below(3));
      other.before_training = !other.every_iterations || random.below(2) == 0;
    }
    other.trained = other.trained && worlds.main.trained && !other.measures();
    worlds.main.micro_batch = std::max(worlds.main.micro_batch, other.samples * other.worst);
    worlds.others.push_back(std::move(other));
  }
  // Who samples whose model: the main one its own mostly, and where there is a lag.
  std::vector<std::string> models;
  if (worlds.main.trained) models.push_back(worlds.main.model());
  for (const World& other : worlds.others) {
    if (other.trained) models.push_back(other.model());
  }
  for (World& other : worlds.others) {
    if (!models.empty() && random.below(4) > 0) other.samples_from = any_of_these(models, random);
  }
  if (!models.empty() && random.below(4) == 0) worlds.main.samples_from = any_of_these(models, random);
  return worlds;
}

PipelineSpec spec_of(const World& world, uint64_t seed, int64_t pause_us, int64_t budget) {
  return spec_of(Worlds{.main = world, .others = {}}, seed, pause_us, budget);
}

PipelineSpec spec_of(const Worlds& worlds, uint64_t seed, int64_t pause_us, int64_t budget) {
  PipelineBuilder builder = begin_pipeline(worlds.main, seed, budget);
  add_path(builder, worlds.main, pause_us);
  for (const World& other : worlds.others) add_path(builder, other, pause_us);
  return builder.build();
}

int64_t budget_of(const World& world, const Registry& registry) {
  Worlds worlds{.main = world, .others = {}};
  return divide_budget(worlds, registry);
}

int64_t divide_budget(Worlds& worlds, const Registry& registry) {
  constexpr int64_t kPlenty = int64_t{1} << 28;
  for (World& other : worlds.others) other.share = kPlenty;
  const CheckResult checked = check(spec_of(worlds, 0, 0, kPlenty * 4), registry);
  EXPECT_TRUE(checked.plan) << render(checked.problems);
  if (!checked.plan) return 0;
  int64_t all = checked.plan->paths.front().capacity.tokens_needed + worlds.main.spare;
  for (size_t i = 0; i < worlds.others.size(); ++i) {
    worlds.others[i].share = checked.plan->paths[i + 1].capacity.tokens_needed + worlds.others[i].spare;
    all += worlds.others[i].share;
  }
  return all;
}

}  // namespace sluice::engine::toy
