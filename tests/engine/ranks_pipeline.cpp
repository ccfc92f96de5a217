#include "tests/engine/ranks_pipeline.h"

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "base/numbers/random.h"
#include "engine/check/check.h"
#include "engine/plan/plan.h"

namespace sluice::engine::toy {
namespace {

Array texts(std::vector<std::string> values) {
  Array array;
  for (std::string& value : values) array.push_back({.data = std::move(value), .where = {}, .base = {}});
  return array;
}

constexpr int64_t kMostDraws = 3;

void add_stuck(PipelineBuilder::Params& params, const RanksShape::Stuck& stuck, const std::string& node) {
  if (stuck.until.empty() || stuck.node != node) return;
  params.push_back({"stuck_on", static_cast<int64_t>(stuck.rank)});
  params.push_back({"stuck_in", stuck.iteration});
  params.push_back({"stuck_until", stuck.until});
  if (stuck.at_the_end) params.push_back({"stuck_at_the_end", true});
}

}  // namespace

RanksShape random_ranks_shape(uint64_t seed) {
  RandomStream random(seed, 3);
  const auto any = [&](int64_t least, int64_t most) {
    return least + static_cast<int64_t>(random.below(static_cast<uint64_t>(most - least + 1)));
  };
  RanksShape shape{.groups = any(1, 7), .samples = any(1, 3), .worst = any(2, 6)};
  shape.micro_batch = shape.samples * shape.worst * any(1, 3);
  shape.lag = any(0, 2);
  shape.iterations = shape.lag + any(1, 4);
  shape.steps = any(1, 3);
  shape.pause_us = seed % 4 == 0 ? 0 : 60;
  shape.filters = random.below(2) == 0;
  shape.refills = shape.filters && random.below(2) == 0;
  shape.measures = random.below(3) == 0;
  shape.pace = std::vector<std::string>{"even", "long_last", "long_first", "any"}[random.below(4)];
  return shape;
}

PipelineSpec ranks_pipeline(const RanksShape& shape, uint64_t seed, const std::function<void(PipelineBuilder&)>& more) {
  const int64_t group = shape.samples * shape.worst;
  const int64_t drawn = shape.groups * (shape.refills ? kMostDraws : 1);
  const int64_t budget = (shape.lag + 2) * (drawn * group + shape.micro_batch);
  const int64_t share = 2 * shape.micro_batch + (shape.refills ? kMostDraws : 1) * shape.groups * group;
  PipelineBuilder builder("ranks", static_cast<int64_t>(shape.iterations));
  builder.budget((shape.budget > 0 ? shape.budget : budget) + (shape.measures ? share : 0), shape.micro_batch)
      .set("pipeline", "seed", static_cast<int64_t>(seed))
      .set("runtime", "cores", int64_t{2})
      .set("runtime", "stall_seconds", 120.0)  // a rank that waits for ever says for what
      .set("cluster", "slots", shape.slots)
      .model("policy", {});
  if (shape.lag > 0) builder.set("schedule", "policy_lag", shape.lag);
  if (shape.on_demand) builder.set("budget", "admission", std::string("on_demand"));
  const auto path = [&](const std::string& prefix, bool measures) {
    PipelineBuilder::Params source{{"groups_per_iteration", shape.groups}};
    if (measures) {
      source.push_back({"every_iterations", int64_t{2}});
      source.push_back({"tokens_in_flight", share});
    }
    builder.node(prefix + "source", "toy_source", {}, source);
    builder.node(prefix + "rollout", "toy_rollout", {prefix + "source"},
                 {{"model", std::string("policy")},
                  {"samples_per_group", shape.samples},
                  {"worst_sample_tokens", shape.worst},
                  {"pause_us", shape.pause_us},
                  {"pace", shape.pace}});
    std::string before = prefix + "rollout";
    if (shape.filters) {
      PipelineBuilder::Params filter{{"reads", texts({"drawn"})}};
      if (shape.refills && !measures) {
        filter.push_back({"most_draws", kMostDraws});
        filter.push_back({"oversample", 1.5});
        filter.push_back({"drop_one_in", int64_t{2}});
      }
      builder.node(prefix + "filter", "toy_filter", {before}, filter);
      before = prefix + "filter";
    }
    PipelineBuilder::Params record{{"pause_us", shape.pause_us}}, train{{"model", std::string("policy")}};
    add_stuck(record, shape.stuck, prefix + "record");
    add_stuck(train, shape.stuck, prefix + "train");
    builder.node(prefix + "record", "tally_record", {before}, record, "cpu:1");
    if (measures || !shape.trains) return;
    if (shape.whitens) {
      builder.node(prefix + "whiten", "tally_whiten", {prefix + "record"}, {{"steps", shape.steps}, {"pause_us", shape.pause_us}},
                   "cpu:1");
    } else {
      builder.node(prefix + "whiten", "tally_move", {prefix + "record"}, {}, "cpu:1");
    }
    builder.node(prefix + "train", "tally_train", {prefix + "whiten"}, train);
    builder.node(prefix + "publish", "toy_publish", {prefix + "train"}, {{"model", std::string("policy")}});
  };
  path("", false);
  if (shape.measures) path("held_", true);
  if (shape.trains_two) {
    builder.model("other", {});
    builder.node("train_other", "tally_train", {"whiten"}, {{"model", std::string("other")}}, "cpu:1");
  }
  if (shape.training_ranks > 0) {
    builder.role("train", {{"ranks", int64_t{shape.training_ranks}}});
    PipelineBuilder::Params sampling{{"ranks", int64_t{shape.sampling_ranks}}};
    if (shape.sampling_budget > 0) sampling.push_back({"tokens_in_flight", shape.sampling_budget + (shape.measures ? share : 0)});
    if (shape.is_elastic) sampling.push_back({"elastic", true});
    builder.role("rollout", sampling);
  }
  if (more) more(builder);
  PipelineSpec spec = builder.build();
  for (NodeSpec& node : spec.nodes) {
    if (shape.training_ranks == 0 || node.type.text == "toy_source") continue;
    const std::string role = node.type.text == "toy_rollout" ? "rollout" : "train";
    node.on.text = node.on.text.empty() ? role : role + "/" + node.on.text;
  }
  for (NodeSpec& node : spec.nodes) {
    if (node.name.text == "train_other") node.metrics_prefix.text = "other";
  }
  return spec;
}

int64_t least_budget(const RanksShape& shape, uint64_t seed, const Registry& registry, int ranks) {
  const CheckResult checked = check(ranks_pipeline(shape, seed), registry, ranks);
  if (!checked.plan) throw std::runtime_error(render(checked.problems));
  return checked.plan->main_path().capacity.tokens_needed;
}

}  // namespace sluice::engine::toy
