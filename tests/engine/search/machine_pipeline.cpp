#include "tests/engine/search/machine_pipeline.h"

#include <algorithm>
#include <numeric>

#include "base/text/strings.h"
#include "engine/check/check.h"
#include "tests/engine/spec_builder.h"
#include "tests/engine/toy_world.h"

namespace sluice::engine::testing {
namespace {

struct SourceParams {
  int64_t groups = 1;
  int64_t least = 1;
  int64_t worst = 1;
};

void add_source_params(Contract<SourceParams>& c) {
  c.param("groups", &SourceParams::groups).at_least(1).doc("of an iteration");
  c.param("least", &SourceParams::least).at_least(1).doc("tokens of a sample");
  c.param("worst", &SourceParams::worst).at_least(1).doc("tokens of a sample");
}

constexpr Column<int64_t> kAsked{"asked", Extent::kGroup};
constexpr Column<int64_t> kItem{"item", Extent::kSample};

class Asking final : public Source {
 public:
  static void describe(Contract<SourceParams>& c) {
    c.type("asking", "groups without samples");
    add_source_params(c);
    c.writes(kAsked);
    c.needs([](const SourceParams& p, NodeNeeds& needs) { needs.groups_per_iteration = p.groups; });
  }
  explicit Asking(const SourceParams&) {}
  bool next_group(Group&) override { return false; }
};

void fill_samples(const SourceParams& p, NodeNeeds& needs) {
  needs.samples_per_group = 1;
  needs.worst_sample_tokens = p.worst;
  needs.least_sample_tokens = p.least;
}

class Making final : public Source {
 public:
  static void describe(Contract<SourceParams>& c) {
    c.type("making", "groups with one sample");
    add_source_params(c);
    c.writes(kItem);
    c.needs([](const SourceParams& p, NodeNeeds& needs) { fill_samples(p, needs), needs.groups_per_iteration = p.groups; });
  }
  explicit Making(const SourceParams&) {}
  bool next_group(Group&) override { return false; }
};

struct SampleParams : SourceParams {
  std::string model;
  bool on_demand = false;
};

class Sampling final : public Rollout {
 public:
  static void describe(Contract<SampleParams>& c) {
    c.type("sampling", "one sample a group");
    c.param("least", static_cast<int64_t SampleParams::*>(&SampleParams::least)).doc("tokens of a sample");
    c.param("worst", static_cast<int64_t SampleParams::*>(&SampleParams::worst)).doc("tokens of a sample");
    c.param("on_demand", &SampleParams::on_demand).doc("takes credit as its samples grow");
    c.model("model", &SampleParams::model, ModelUse::kSamples).doc("the policy");
    c.reads(kAsked);
    c.writes(kItem);
    c.needs([](const SampleParams& p, NodeNeeds& needs) {
      fill_samples(p, needs), needs.on_demand_tokens = p.on_demand ? p.least : 0;
    });
  }
  explicit Sampling(const SampleParams&) {}
  int64_t worst_tokens(const Group&) const override { return 0; }
  void start(Group) override {}
  void step(Sink&) override {}
  bool idle() const override { return true; }
};

struct StepParams {
  bool reads = true;
  bool barrier = false;
  int64_t draws = 0;
  double oversample = 1;
  std::string live, trains, publishes;
};

class Stepping final : public Node {
 public:
  static void describe(Contract<StepParams>& c) {
    c.type("step", "does nothing");
    c.param("reads", &StepParams::reads).doc("reads the samples");
    c.param("barrier", &StepParams::barrier).doc("collects the iteration");
    c.param("draws", &StepParams::draws).doc("0: no filter; above 1: with refill");
    c.param("oversample", &StepParams::oversample).doc("of a filter with refill");
    c.model("live", &StepParams::live, ModelUse::kReads).doc("model whose live weights it reads");
    c.model("trains", &StepParams::trains, ModelUse::kUpdates).doc("model");
    c.model("publishes", &StepParams::publishes, ModelUse::kPublishes).doc("model");
    c.reads_if([](const StepParams& p) { return p.reads; }, kItem);
    c.iteration_scope_if([](const StepParams& p) { return p.barrier; }, "barrier = true");
    c.needs([](const StepParams& p, NodeNeeds& needs) {
      if (p.draws > 0) needs.drops_groups = true, needs.most_draws = p.draws, needs.oversample = p.oversample;
    });
  }
  explicit Stepping(const StepParams&) {}
  void process(MicroBatch&) override {}
};

bool has(const Machine& machine, Use use) {
  return std::any_of(machine.steps.begin(), machine.steps.end(), [&](const Step& step) { return step.use == use; });
}

std::string key(const std::string& name, int64_t value) { return name + " = " + std::to_string(value) + "\n"; }
std::string key(const std::string& name, const char* value) { return name + " = " + value + "\n"; }
std::string key(const std::string& name, bool value) { return key(name, value ? "true" : "false"); }

std::string prefix_of(size_t path) { return path == 0 ? "" : "beside_"; }

std::string source_text(const Machine& machine, const std::string& prefix, int share) {
  std::string text = "[nodes." + prefix + "source]\n" + key("type", machine.rollout ? "\"asking\"" : "\"making\"") +
                     key("groups", static_cast<int64_t>(machine.groups));
  if (machine.own_share) text += key("tokens_in_flight", static_cast<int64_t>(share));
  if (machine.every > 0) text += key("every_iterations", static_cast<int64_t>(machine.every));
  if (machine.before_training) text += key("before_training", true);
  return text;
}

std::string quoted_model(size_t path) { return path == 0 ? "\"policy\"" : "\"other_policy\""; }

std::string step_text(const Step& step, const std::string& prefix, const std::string& maker, const std::string& model) {
  std::vector<std::string> inputs;
  for (const int input : step.inputs) inputs.push_back("\"" + prefix + "step" + std::to_string(input) + "\"");
  if (inputs.empty()) inputs.push_back("\"" + prefix + maker + "\"");
  std::string text = key("type", "\"step\"") + "inputs = [" + join(inputs, ", ") + "]\n" +
                     key("draws", static_cast<int64_t>(step.draws)) +
                     "oversample = " + std::to_string(step.draws > 1 ? step.oversample_tenths / 10.0 : 1.0) + "\n" +
                     key("reads", step.reads) + key("barrier", step.barrier);
  if (step.use == Use::kReadsLive) text += key("live", model.c_str());
  if (step.use == Use::kTrains) text += key("trains", model.c_str());
  if (step.use == Use::kPublishes) text += key("publishes", model.c_str());
  return text;
}

// Quoted; empty: of none that is trained.
std::string model_sampled(const Paths& paths, size_t p) {
  const auto trains = [](const Machine& path) { return has(path, Use::kTrains); };
  if (const int of = paths.paths[p].model_of; of >= 0) return quoted_model(static_cast<size_t>(of));
  const auto first = std::find_if(paths.paths.begin(), paths.paths.end(), trains);
  return first == paths.paths.end() ? std::string() : quoted_model(static_cast<size_t>(first - paths.paths.begin()));
}

std::string path_text(const Paths& paths, size_t p, int share) {
  const Machine& machine = paths.paths[p];
  const std::string prefix = prefix_of(p);
  std::string text = source_text(machine, prefix, share);
  if (machine.rollout) {
    text += "[nodes." + prefix + "rollout]\n" + key("type", "\"sampling\"") + "inputs = [\"" + prefix + "source\"]\n" +
            key("on_demand", machine.on_demand);
    if (machine.owners > 0) text += key("on", "\"rollout\"");
    if (machine.of_frozen_model) text += key("model", "\"frozen\"");
    if (!machine.of_frozen_model && !model_sampled(paths, p).empty()) text += key("model", model_sampled(paths, p).c_str());
  }
  text += key("least", static_cast<int64_t>(machine.least)) + key("worst", static_cast<int64_t>(machine.worst));
  for (size_t s = 0; s < machine.steps.size(); ++s) {
    text += "[nodes." + prefix + "step" + std::to_string(s) + "]\n" +
            step_text(machine.steps[s], prefix, machine.rollout ? "rollout" : "source", quoted_model(p)) +
            (machine.owners > 0 ? key("on", "\"train\"") : std::string());
  }
  return text;
}

std::string pipeline_text(const Paths& paths, const std::vector<int>& shares) {
  const auto any = [&](const auto& is) { return std::any_of(paths.paths.begin(), paths.paths.end(), is); };
  const Machine& first = paths.paths.front();
  std::string text = "[pipeline]\n" + key("iterations", static_cast<int64_t>(first.iterations)) + "[budget]\n" +
                     key("tokens_in_flight", std::accumulate(shares.begin(), shares.end(), int64_t{0})) +
                     key("micro_batch_tokens", static_cast<int64_t>(first.micro_batch));
  if (any([](const Machine& path) { return path.on_demand; })) text += key("admission", "\"on_demand\"");
  text += "[schedule]\n" + key("policy_lag", static_cast<int64_t>(first.lag));
  text += "[cluster]\n" + key("slots", static_cast<int64_t>(first.slots));
  if (first.owners > 0) {
    text += "[cluster.roles.train]\n" + key("ranks", static_cast<int64_t>(first.owners)) + "[cluster.roles.rollout]\n" +
            key("ranks", static_cast<int64_t>(paths.ranks - first.owners)) +
            key("tokens_in_flight", static_cast<int64_t>(first.making)) + (first.elastic ? "elastic = true\n" : "");
  }
  for (size_t p = 0; p < paths.paths.size(); ++p) {
    const std::string model = quoted_model(p);
    if (has(paths.paths[p], Use::kTrains)) text += "[models." + model.substr(1, model.size() - 2) + "]\n";
  }
  if (any([](const Machine& path) { return path.of_frozen_model; })) text += "[models.frozen]\n";
  for (size_t p = 0; p < paths.paths.size(); ++p) text += path_text(paths, p, shares[p]);
  return text;
}

}  // namespace

void add_machine_types(Registry& registry) {
  registry.add<Asking>();
  registry.add<Making>();
  registry.add<Sampling>();
  registry.add<Stepping>();
  toy::register_toys(registry);  // its model type
}

CheckResult check_machine(const Paths& paths, const std::vector<int>& shares, const Registry& registry) {
  return check(spec_of(pipeline_text(paths, shares)), registry, paths.ranks);
}

const PlanNode& node_of_step(const Plan& plan, size_t path, size_t step) {
  return plan.nodes[static_cast<size_t>(plan.index_of(prefix_of(path) + "step" + std::to_string(step)))];
}

}  // namespace sluice::engine::testing
