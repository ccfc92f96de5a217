#include "cli/plan/fit_remedies.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/text/strings.h"
#include "engine/memory/memory_needs.h"

namespace sluice::cli {
namespace {

using engine::Plan;
using engine::PlanModel;

// As TOML; empty: unset, or no such key.
std::string effective(const Plan& plan, const std::string& table, const std::string& key) {
  const auto found =
      std::ranges::find_if(plan.effective, [&](const engine::EffectiveKey& k) { return k.table == table && k.key == key; });
  return found == plan.effective.end() ? std::string() : found->text;
}

bool trains_some_of(const PlanModel& model) { return model.usage.updated; }

class Remedies {
 public:
  Remedies(const Plan& plan, const engine::PipelineSpec& spec) : plan_(plan), spec_(spec) {}

  std::vector<Remedy> all() {
    add_adapters();
    add_bases();
    add_bfloat16();
    add_quantization();
    add_settings();
    add_roles();
    add_without_measuring();
    return std::move(remedies_);
  }

 private:
  void add_adapters() {
    for (const PlanModel& model : plan_.models) {
      if (!engine::trains_most_of(model)) continue;
      adapters_[model.name] = remedies_.size();
      remedies_.push_back({.name = "lora in [models." + model.name + "]",
                           .sets = {"models." + model.name + ".lora.rank=16"},
                           .costs = "adapters alone are trained",
                           .with = {}});
    }
  }

  void add_bases() {
    for (const PlanModel& model : plan_.models) {
      const PlanModel* const base = engine::base_in_place_of(plan_, model);
      if (base == nullptr) continue;
      const auto adapters = adapters_.find(base->name);
      if (adapters == adapters_.end() && !base->facts.has_base) continue;
      Remedy remedy{.name = "base_of = " + sluice::quoted(base->name) + " in [models." + model.name + "]",
                    .sets = {},
                    .costs = "nothing",
                    .with = {}};
      remedy.in_place_of.push_back("models." + model.name + ".");
      if (adapters != adapters_.end()) remedy.with = adapters->second;
      for (const std::string& key : keys_of(model.name)) remedy.sets.push_back("models." + model.name + "." + key + "=");
      remedy.sets.push_back("models." + model.name + ".base_of=" + base->name);
      remedies_.push_back(std::move(remedy));
    }
  }

  // A model with base_of has no other key.
  std::vector<std::string> keys_of(const std::string& model) const {
    std::vector<std::string> keys;
    for (const engine::ModelSpec& spec : spec_.models) {
      if (spec.name.text != model) continue;
      for (const engine::Entry& entry : spec.params.entries) keys.push_back(entry.key);
    }
    return keys;
  }

  void add_bfloat16() {
    const int rank = engine::tightest_need(plan_).rank;
    const bool is_apart = plan_.forwards(rank);  // then the models of other ranks are not in the way
    Remedy remedy{.name = std::string("dtype = \"bfloat16\" in all models") + (is_apart ? " of the role" : ""),
                  .sets = {},
                  .costs = "rounding",
                  .with = {}};
    for (const PlanModel& model : plan_.models) {
      const std::string table = "models." + model.name;
      if (is_apart && plan_.forward_role_of(model) != plan_.role_of(rank)) continue;
      if (model.facts.made_from().empty() && effective(plan_, table, "dtype") == "\"float32\"")
        remedy.sets.push_back(table + ".dtype=bfloat16");
    }
    if (!remedy.sets.empty()) remedies_.push_back(std::move(remedy));
  }

  // Of what nobody trains, such as a reference. Adapters over a quantised base are another choice than what is trained.
  void add_quantization() {
    for (const PlanModel& model : plan_.models) {
      const std::string table = "models." + model.name;
      if (model.usage.updated || !model.facts.made_from().empty() || effective(plan_, table, "quantization") != "\"none\"")
        continue;
      for (const std::string bits : {"8", "4"})
        remedies_.push_back({.name = "quantization = \"int" + bits + "\" in [" + table + "]",
                             .sets = {table + ".quantization=int" + bits},
                             .costs = "rounding to " + bits + " bits",
                             .with = {}});
    }
  }

  void add_settings() {
    const auto add = [this](const std::string& set, const std::string& name, const char* costs) {
      remedies_.push_back({.name = name, .sets = {set}, .costs = costs, .with = {}});
    };
    if (plan_.training_ranks() > 1 && !plan_.shards_optimizer())
      add("cluster.shard=optimizer", "shard = \"optimizer\" in [cluster]", "nothing");
    if (plan_.training_ranks() > 1 && !plan_.shards_parameters())
      add("cluster.shard=parameters", "shard = \"parameters\" in [cluster]", "ranks that train on one host");
    for (const auto& [ranks, ring] : engine::more_pass_ranks(plan_)) {
      Remedy remedy{.name = "sequence_parallel = " + std::to_string(ranks),
                    .sets = {"cluster.sequence_parallel=" + std::to_string(ranks)},
                    .costs = "ranks that assist do not sample",
                    .with = {}};
      if (ring != plan_.ring()) remedy.sets.push_back("cluster.ring=" + std::to_string(ring));
      if (ring > 1) remedy.name += " and ring = " + std::to_string(ring), remedy.costs += ", and attention rounds otherwise";
      remedy.name += " in [cluster]";
      remedies_.push_back(std::move(remedy));
    }
    if (plan_.checkpoint.copy == engine::CheckpointCopy::kMemory)
      add("checkpoint.copy=none", "copy = \"none\" in [checkpoint]", "training waits while it is saved");
    if (!plan_.budget.pass_tokens.automatic)
      add("budget.pass_tokens=auto", "pass_tokens = \"auto\" in [budget]", "smaller passes");
    if (plan_.schedule.policy_lag > 0)
      add("schedule.policy_lag=0", "policy_lag = 0 in [schedule]", "sampling waits for training");
  }

  // Half of the ranks sample, and the others train.
  void add_roles() {
    const int half = plan_.ranks / 2;
    const auto makes = [this](int node) {
      return std::ranges::any_of(plan_.paths, [&](const engine::PlanPath& path) { return path.rollout == node; });
    };
    if (!plan_.all_roles().empty() || half == 0 || std::ranges::none_of(plan_.models, trains_some_of)) return;
    Remedy remedy{
        .name = "roles of " + plural(plan_.ranks - half, "rank") + " that train and " + std::to_string(half) + " that sample",
        .sets = {"cluster.roles.train.ranks=" + std::to_string(plan_.ranks - half),
                 "cluster.roles.rollout.ranks=" + std::to_string(half)},
        .costs = "ranks wait for each other",
        .with = {}};
    for (size_t i = 0; i < plan_.nodes.size(); ++i) {
      const int node = static_cast<int>(i);
      if (plan_.is_inside_rollout(node)) continue;
      const std::string& name = plan_.nodes[i].name;
      remedy.sets.push_back("nodes." + name + ".on=" + (makes(node) ? "rollout" : "train") + place_of(name));
    }
    remedies_.push_back(std::move(remedy));
  }

  // What the file says of where a node runs, after a role.
  std::string place_of(const std::string& node) const {
    const auto spec = std::ranges::find_if(spec_.nodes, [&](const engine::NodeSpec& s) { return s.name.text == node; });
    return spec == spec_.nodes.end() || spec->on.text.empty() ? std::string() : "/" + spec->on.text;
  }

  // A path that measures may sample from a version that is published, while training makes another one.
  void add_without_measuring() {
    Remedy remedy{.name = {}, .sets = {}, .costs = "no measuring beside training", .with = {}};
    std::vector<std::string> sources;
    for (size_t path = 0; path < plan_.paths.size(); ++path) {
      if (!plan_.paths[path].measures()) continue;
      for (const engine::PlanNode& node : plan_.nodes) {
        if (node.path != static_cast<int>(path)) continue;
        if (node.inputs.empty()) sources.push_back(sluice::quoted(node.name));
        remedy.sets.push_back("nodes." + node.name + "=false");
        remedy.in_place_of.push_back("nodes." + node.name + ".");
      }
    }
    remedy.name = "without what comes from " + join(sources, ", ");
    if (!remedy.sets.empty()) remedies_.push_back(std::move(remedy));
  }

  const Plan& plan_;
  const engine::PipelineSpec& spec_;
  std::vector<Remedy> remedies_;
  std::map<std::string, size_t> adapters_;  // by model: of remedies_
};

}  // namespace

std::vector<std::string> sets_together(const std::vector<const Remedy*>& remedies) {
  std::vector<std::string> sets;
  for (const Remedy* remedy : remedies) {
    for (const std::string& set : remedy->sets) {
      const bool is_replaced = std::ranges::any_of(remedies, [&](const Remedy* other) {
        return other != remedy &&
               std::ranges::any_of(other->in_place_of, [&](const auto& begin) { return set.starts_with(begin); });
      });
      if (!is_replaced) sets.push_back(set);
    }
  }
  return sets;
}

std::vector<Remedy> remedies_for(const engine::Plan& plan, const engine::PipelineSpec& spec) {
  return Remedies(plan, spec).all();
}

}  // namespace sluice::cli
