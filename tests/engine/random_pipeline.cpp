#include "tests/engine/random_pipeline.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "engine/check/check.h"
#include "engine/contract/spec/pipeline_builder.h"
#include "engine/plan/plan.h"

namespace sluice::engine::toy {
namespace {

/// Builds paths step by step: knows what is alive after each node.
class PathBuilder {
 public:
  explicit PathBuilder(uint64_t seed) : random_(seed, 0) {}

  RandomPath build() {
    path_.iterations = 1 + below(5);
    path_.groups = 1 + below(9);
    path_.samples = 1 + below(3);
    path_.worst = 3 + below(6);
    path_.trained = below(4) > 0;
    path_.rollout_on = any_of_these<std::string>({"cpu", "cpu:1"}, random_);
    places_["rollout"] = {.columns = {"drawn"}, .stream = "", .behind_barrier = false};
    const int64_t count = 1 + below(6);
    for (int64_t i = 0; i < count; ++i) add_step(i);
    const RandomPath::Step last = path_.steps.back();
    path_.train_input = last.name;
    const std::set<std::string>& alive = places_[last.name].columns;
    path_.trained_column = last.filters() ? *alive.rbegin() : last.name;
    if (path_.trained) path_.lag = below(3);
    path_.spare = below(3) == 0 ? 0 : below(2 * path_.samples * path_.worst);
    path_.micro_batch = path_.samples * path_.worst * (1 + below(3));
    path_.on_demand = below(2) == 0;
    path_.pace = any_of_these<std::string>({"even", "long_last", "long_first", "any"}, random_);
    return path_;
  }

 private:
  struct Place {
    std::set<std::string> columns;
    std::string stream;
    bool behind_barrier = false;
  };

  int64_t below(int64_t bound) { return static_cast<int64_t>(random_.below(static_cast<uint64_t>(bound))); }

  // Only nodes after the same filters may be joined.
  void add_step(int64_t number) {
    RandomPath::Step step;
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
    path_.steps.push_back(std::move(step));
  }

  void make_filter(RandomPath::Step& step, int64_t number, Place& place) {
    step.name = "filter" + std::to_string(number);
    step.drop_one_in = 1 + below(4);
    place.stream = step.name;
    if (refills_ || place.behind_barrier || below(3) == 0) return;
    refills_ = step.refills = true;
    path_.most_draws = 2 + below(3);
    path_.oversample = 1 + 0.5 * static_cast<double>(below(3));
  }

  RandomStream random_;
  RandomPath path_;
  std::map<std::string, Place> places_;  // after each node
  bool refills_ = false;
};

Array array_of(const std::vector<std::string>& names) {
  Array array;
  for (const std::string& name : names) array.push_back({.data = name, .where = {}, .base = {}});
  return array;
}

std::vector<std::string> inputs_of(const RandomPath::Step& step, const std::string& prefix) {
  std::vector<std::string> inputs;
  for (const std::string& name : step.inputs) inputs.push_back(prefix + name);
  return inputs;
}

PipelineBuilder begin_pipeline(const RandomPath& path, uint64_t seed, int64_t budget) {
  PipelineBuilder builder("path", path.iterations);
  builder.budget(budget, path.micro_batch)
      .set("pipeline", "seed", static_cast<int64_t>(seed))
      .set("runtime", "cores", int64_t{2});
  builder.set("runtime", "stall_seconds", 5.0);
  if (path.on_demand) builder.set("budget", "admission", std::string("on_demand"));
  if (path.lag > 0) builder.set("schedule", "policy_lag", path.lag);
  return builder;
}

PipelineBuilder::Params source_params_of(const RandomPath& path) {
  PipelineBuilder::Params params{{"groups_per_iteration", path.groups}};
  if (path.every_iterations) params.emplace_back("every_iterations", *path.every_iterations);
  if (path.before_training) params.emplace_back("before_training", true);
  if (path.share > 0) params.emplace_back("tokens_in_flight", path.share);
  return params;
}

void add_path(PipelineBuilder& builder, const RandomPath& path, int64_t pause_us) {
  const std::string& prefix = path.prefix;
  PipelineBuilder::Params rollout{
      {"samples_per_group", path.samples}, {"worst_sample_tokens", path.worst}, {"pause_us", pause_us}};
  rollout.emplace_back("pace", path.pace);
  rollout.emplace_back("timing_seed", path.timing_seed);
  if (path.first_done_first) rollout.emplace_back("first_done_first", true);
  if (const std::string model = path.sampled_model(); !model.empty()) rollout.emplace_back("model", model);
  builder.node(path.source(), "toy_source", {}, source_params_of(path));
  builder.node(prefix + "rollout", "toy_rollout", {path.source()}, rollout, path.rollout_on);
  for (const RandomPath::Step& step : path.steps) {
    PipelineBuilder::Params params{{"reads", array_of(step.reads)}};
    if (step.filters()) {
      params.emplace_back("drop_one_in", step.drop_one_in);
      if (step.refills) params.emplace_back("most_draws", path.most_draws), params.emplace_back("oversample", path.oversample);
    } else {
      params.emplace_back("writes", step.name), params.emplace_back("barrier", step.barrier),
          params.emplace_back("pause_us", pause_us);
      if (path.remembers) params.emplace_back("remembers", true);
    }
    builder.node(prefix + step.name, step.filters() ? "toy_filter" : "toy_mix", inputs_of(step, prefix), params, step.on);
  }
  if (!path.trained) return;
  builder.model(path.model(), {});
  builder.node(prefix + "train", "toy_train", {prefix + path.train_input},
               {{"model", path.model()}, {"reads", path.trained_column}});
  builder.node(prefix + "publish", "toy_publish", {prefix + "train"}, {{"model", path.model()}});
}

}  // namespace

RandomPath random_path(uint64_t seed) { return PathBuilder(seed).build(); }

// The others run as long as the main one, and have its micro-batches at least.
RandomPipeline random_pipeline(uint64_t seed) {
  RandomStream random(seed, 7);
  RandomPipeline paths{.main = random_path(seed), .others = {}};
  const uint64_t others = random.below(3);
  for (uint64_t i = 0; i < others; ++i) {
    RandomPath other = random_path(seed * 3 + i + 1000000);
    other.prefix = "p" + std::to_string(i) + "_";
    other.iterations = paths.main.iterations;
    other.lag = paths.main.lag;
    if (random.below(3) > 0) {
      if (random.below(4) > 0) other.every_iterations = 1 + static_cast<int64_t>(random.below(3));
      other.before_training = !other.every_iterations || random.below(2) == 0;
    }
    other.trained = other.trained && paths.main.trained && !other.measures();
    paths.main.micro_batch = std::max(paths.main.micro_batch, other.samples * other.worst);
    paths.others.push_back(std::move(other));
  }
  // Who samples whose model: the main one its own mostly, and where there is a lag.
  std::vector<std::string> models;
  if (paths.main.trained) models.push_back(paths.main.model());
  for (const RandomPath& other : paths.others) {
    if (other.trained) models.push_back(other.model());
  }
  for (RandomPath& other : paths.others) {
    if (!models.empty() && random.below(4) > 0) other.samples_from = any_of_these(models, random);
  }
  if (!models.empty() && random.below(4) == 0) paths.main.samples_from = any_of_these(models, random);
  return paths;
}

PipelineSpec spec_of(const RandomPath& path, uint64_t seed, int64_t pause_us, int64_t budget) {
  return spec_of(RandomPipeline{.main = path, .others = {}}, seed, pause_us, budget);
}

PipelineSpec spec_of(const RandomPipeline& paths, uint64_t seed, int64_t pause_us, int64_t budget) {
  PipelineBuilder builder = begin_pipeline(paths.main, seed, budget);
  add_path(builder, paths.main, pause_us);
  for (const RandomPath& other : paths.others) add_path(builder, other, pause_us);
  return builder.build();
}

int64_t budget_of(const RandomPath& path, const Registry& registry) {
  RandomPipeline paths{.main = path, .others = {}};
  return divide_budget(paths, registry);
}

int64_t divide_budget(RandomPipeline& paths, const Registry& registry) {
  constexpr int64_t kPlenty = int64_t{1} << 28;
  for (RandomPath& other : paths.others) other.share = kPlenty;
  const CheckResult checked = check(spec_of(paths, 0, 0, kPlenty * 4), registry);
  EXPECT_TRUE(checked.plan) << render(checked.problems);
  if (!checked.plan) return 0;
  int64_t all = checked.plan->paths.front().capacity.tokens_needed + paths.main.spare;
  for (size_t i = 0; i < paths.others.size(); ++i) {
    paths.others[i].share = checked.plan->paths[i + 1].capacity.tokens_needed + paths.others[i].spare;
    all += paths.others[i].share;
  }
  return all;
}

}  // namespace sluice::engine::toy
