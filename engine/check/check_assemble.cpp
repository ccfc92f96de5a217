#include <algorithm>
#include <filesystem>
#include <map>

#include "base/error.h"
#include "base/path_kind.h"
#include "base/strings.h"
#include "engine/check/check_draft.h"
#include "engine/plan/bind_settings.h"

namespace sluice::engine::checking {
namespace {

/// Turns a draft without errors into a plan: indices of the file's order become topological ones.
class Assembly {
 public:
  explicit Assembly(Draft& draft) : draft_(draft), plan_(draft.plan), position_(draft.nodes.size()) {
    for (size_t i = 0; i < draft.order.size(); ++i) position_[static_cast<size_t>(draft.order[i])] = static_cast<int>(i);
  }

  void run() {
    for (const int index : draft_.order) add_node(draft_.node(index));
    plan_.source = position(draft_.source.value());
    if (draft_.rollout) plan_.rollout = position(*draft_.rollout);
    if (draft_.refill) plan_.refill = position(*draft_.refill);
    add_columns();
    add_edges();
    add_frees();
    add_models();
    add_tokens();
    add_effective();
    note_schedules();
  }

 private:
  int position(int draft_index) const { return position_[static_cast<size_t>(draft_index)]; }
  PlanNode& node(int index) { return plan_.nodes[static_cast<size_t>(index)]; }
  bool before(int a, int b) const {
    return draft_.before(draft_.order[static_cast<size_t>(a)], draft_.order[static_cast<size_t>(b)]);
  }
  bool at_or_before(int a, int b) const { return a == b || before(a, b); }

  void add_node(DraftNode& from) {
    PlanNode& to = plan_.nodes.emplace_back();
    to.name = from.name();
    to.where = place_of(from);
    to.type = from.type;
    to.params = from.params;
    to.needs = *from.needs;
    to.metrics_prefix = from.spec->metrics_prefix.text;
    to.executor = from.executor;
    to.stream = from.stream < 0 ? -1 : position(from.stream);
    for (const int input : from.inputs) to.inputs.push_back(position(input));
    for (const int output : from.outputs) to.outputs.push_back(position(output));
    std::sort(to.outputs.begin(), to.outputs.end());
  }

  void add_columns() {
    std::map<std::string, int> by_name;
    for (size_t i = 0; i < plan_.nodes.size(); ++i) {
      for (const ColumnSpec& column : plan_.nodes[i].needs.writes) {
        const int slot = static_cast<int>(plan_.columns.size());
        by_name.emplace(column.name, slot);
        plan_.columns.push_back({column, static_cast<int>(i), {}});
        plan_.nodes[i].writes.push_back(slot);
      }
    }
    for (size_t i = 0; i < plan_.nodes.size(); ++i) {
      for (const ColumnSpec& column : plan_.nodes[i].needs.reads) {
        auto& reads = plan_.nodes[i].reads;
        const int slot = by_name.at(column.name);
        if (std::find(reads.begin(), reads.end(), slot) != reads.end()) continue;  // named twice, as by two parameters
        reads.push_back(slot);
        plan_.columns[static_cast<size_t>(slot)].readers.push_back(static_cast<int>(i));
      }
    }
  }

  // A column is alive on an edge if it was written by then and is still read from there on.
  void add_edges() {
    for (size_t to = 0; to < plan_.nodes.size(); ++to) {
      for (const int from : plan_.nodes[to].inputs) {
        PlanEdge edge{from, static_cast<int>(to), {}};
        for (size_t c = 0; c < plan_.columns.size(); ++c) {
          const PlanColumn& column = plan_.columns[c];
          const auto is_behind = [&](int reader) { return at_or_before(edge.to, reader); };
          if (!at_or_before(column.writer, from)) continue;
          if (std::any_of(column.readers.begin(), column.readers.end(), is_behind)) edge.columns.push_back(static_cast<int>(c));
        }
        plan_.edges.push_back(std::move(edge));
      }
    }
  }

  // The last reader in order frees a column if all other readers come before it on some path; readers in parallel branches free
  // together.
  void add_frees() {
    for (size_t c = 0; c < plan_.columns.size(); ++c) {
      const auto& readers = plan_.columns[c].readers;
      if (readers.empty()) continue;
      const int last = readers.back();
      const bool alone = std::all_of(readers.begin(), readers.end(), [&](int reader) { return at_or_before(reader, last); });
      if (alone) node(last).frees.push_back(static_cast<int>(c));
    }
  }

  void add_models() {
    for (const DraftModel& from : draft_.models) {
      PlanModel& to = plan_.models.emplace_back();
      to.name = from.spec->name.text;
      to.params = from.params;
      to.facts = from.facts;
      to.usage.name = to.name;
      to.usage.seed = static_cast<uint64_t>(plan_.pipeline.seed);
      to.usage.iterations = plan_.pipeline.iterations;
      to.usage.updated = from.updater >= 0;
      to.usage.kept_versions = kept_versions(from);
      to.usage.saved_versions = from.sampler >= 0 && from.updater >= 0 ? plan_.schedule.policy_lag : 0;
    }
  }

  // While iteration i is sampled with version i - lag, training may have published all versions up to i: lag + 1 of them must
  // stay readable. At lag 0 that is one, and it may be the live weights themselves, which do not change before the iteration is
  // complete.
  int64_t kept_versions(const DraftModel& model) const {
    if (model.sampler < 0) return 0;
    return model.updater < 0 ? 1 : plan_.schedule.policy_lag + 1;
  }

  // Nothing holds more than is in flight, but for a node whose micro-batches nobody reads any more: they are not in flight.
  void add_tokens() {
    const int64_t in_flight = plan_.capacity.in_flight_tokens;
    for (size_t i = 0; i < plan_.nodes.size(); ++i) {
      const int64_t worst = draft_.proof.worst_tokens[i];
      plan_.nodes[i].worst_tokens = draft_.proof.holds[i] ? std::min(worst, in_flight) : worst;
    }
    node(plan_.source).worst_tokens = plan_.capacity.group_tokens;  // the group that waits to be admitted
    node(plan_.rollout.value_or(plan_.source)).worst_tokens = in_flight;
  }

  void add_effective() {
    for (const Name& plugin : draft_.spec.plugins) {
      const auto path = std::filesystem::path(draft_.spec.plugins_base) / plugin.text;
      plan_.plugins.push_back(absolute_path(path).lexically_normal().string());
    }
    for (size_t i = 0; i < draft_.models.size(); ++i) add_effective_model(draft_.models[i], plan_.models[i]);
    for (const int index : draft_.order) add_effective_node(draft_.node(index));
  }

  void add_effective_model(DraftModel& from, PlanModel& to) {
    for (EffectiveKey& key : effective_keys("models." + to.name, draft_.registry.model_type()->params(), from.params.get(),
                                            from.spec->params, preset_scope(draft_, &from.preset_uses))) {
      if (!key.text.empty()) to.effective += key.key + " = " + key.text + "\n";
      plan_.effective.push_back(std::move(key));
    }
  }

  void add_effective_node(DraftNode& from) {
    const std::string table = "nodes." + from.name();
    const NodeSpec& spec = *from.spec;
    plan_.effective.push_back({table, "type", sluice::quoted(spec.type.text), origin_of(spec.type.where)});
    if (!spec.inputs.empty()) {
      std::vector<std::string> inputs;
      for (const Name& input : spec.inputs) inputs.push_back(sluice::quoted(input.text));
      plan_.effective.push_back({table, "inputs", "[" + join(inputs, ", ") + "]", origin_of(spec.inputs.front().where)});
    }
    const bool follows_rollout = draft_.rollout && from.type->kind == NodeKind::kSource;
    if (!follows_rollout) {
      plan_.effective.push_back({table, "on", sluice::quoted(from.executor),
                                 spec.on.text.empty() ? "default" : origin_of(spec.on.where), /*harmless=*/true});
    }
    if (const Name& prefix = spec.metrics_prefix; !prefix.text.empty()) {
      plan_.effective.push_back(
          {table, "metrics_prefix", sluice::quoted(prefix.text), origin_of(prefix.where), /*harmless=*/true});
    }
    for (EffectiveKey& key :
         effective_keys(table, from.type->params, from.params.get(), spec.params, preset_scope(draft_, from, &from.preset_uses)))
      plan_.effective.push_back(std::move(key));
  }

  // A run that goes on may get more iterations, unless what was trained before depends on how many there are.
  void note_schedules() {
    std::vector<std::string> models;
    for (const PlanModel& model : plan_.models) {
      if (model.usage.updated && model.facts.follows_iterations) models.push_back(model.name);
    }
    if (models.empty()) return;
    const auto is_iterations = [](const EffectiveKey& key) { return key.table == "pipeline" && key.key == "iterations"; };
    const auto key = std::ranges::find_if(plan_.effective, is_iterations);
    key->harmless = false;
    key->why = "the learning rate of " + join(models, ", ") + " follows it";
  }

  Draft& draft_;
  Plan& plan_;
  std::vector<int> position_;  // by draft index
};

}  // namespace

void assemble_plan(Draft& draft) { Assembly(draft).run(); }

}  // namespace sluice::engine::checking
