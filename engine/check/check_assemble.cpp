#include <algorithm>
#include <filesystem>
#include <map>
#include <utility>

#include "base/error.h"
#include "base/files/path_kind.h"
#include "base/text/strings.h"
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
    for (const DraftPath& path : draft_.paths) add_path(path);
    add_columns();
    add_edges();
    add_frees();
    add_models();
    add_tokens();
    add_effective();
    note_schedules();
    note_shard();
  }

 private:
  int position(int draft_index) const { return position_[static_cast<size_t>(draft_index)]; }
  PlanNode& node(int index) { return plan_.nodes[static_cast<size_t>(index)]; }
  bool before(int a, int b) const {
    return draft_.before(draft_.order[static_cast<size_t>(a)], draft_.order[static_cast<size_t>(b)]);
  }
  bool at_or_before(int a, int b) const { return a == b || before(a, b); }

  void add_path(const DraftPath& from) {
    PlanPath& to = plan_.paths.emplace_back();
    to.source = position(from.source);
    if (from.rollout) to.rollout = position(*from.rollout);
    if (from.refill) to.refill = position(*from.refill);
    to.settings = draft_.node(from.source).source;
    to.tokens_in_flight = from.tokens_in_flight;
    to.micro_batch_tokens = from.micro_batch_tokens;
    to.follows_versions = std::ranges::any_of(node(to.maker()).needs.models, [&](const ModelNeed& need) {
      const int model = draft_.find_model(need.model);
      return need.use == ModelUse::kSamples && model >= 0 && draft_.models[static_cast<size_t>(model)].updater >= 0;
    });
    to.policy_lag = to.follows_versions && !to.measures() ? plan_.schedule.policy_lag : 0;
    to.capacity = from.capacity;
  }

  void add_node(DraftNode& from) {
    PlanNode& to = plan_.nodes.emplace_back();
    to.name = from.name();
    to.where = place_of(from);
    to.type = from.type;
    to.params = from.params;
    to.files = named_files(from.spec->params, from.type->params);
    to.needs = *from.needs;
    to.metrics_prefix = metrics_prefix_of(draft_, from);
    to.executor = from.executor;
    to.path = from.path;
    to.stream = from.stream < 0 ? -1 : position(from.stream);
    for (const int input : from.inputs) to.inputs.push_back(position(input));
    for (const int output : from.outputs) to.outputs.push_back(position(output));
    std::sort(to.outputs.begin(), to.outputs.end());
  }

  void add_columns() {
    std::map<std::pair<int, std::string>, int> by_name;  // by path
    for (size_t i = 0; i < plan_.nodes.size(); ++i) {
      for (const ColumnSpec& column : plan_.nodes[i].needs.writes) {
        const int slot = static_cast<int>(plan_.columns.size());
        by_name.emplace(std::pair(plan_.nodes[i].path, column.name), slot);
        plan_.columns.push_back({column, static_cast<int>(i), {}});
        plan_.nodes[i].writes.push_back(slot);
      }
    }
    for (size_t i = 0; i < plan_.nodes.size(); ++i) {
      for (const ColumnSpec& column : plan_.nodes[i].needs.reads) {
        auto& reads = plan_.nodes[i].reads;
        const int slot = by_name.at({plan_.nodes[i].path, column.name});
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
      to.usage.read = from.has_live_reader || is_base(to.name);
      to.usage.versions.readable = readable_versions(from);
      to.usage.versions.saved = draft_.trains_what_it_samples(from) ? plan_.schedule.policy_lag : 0;
    }
  }

  bool is_base(const std::string& name) const {
    return std::ranges::any_of(draft_.models, [&](const DraftModel& model) { return model.facts.base_of == name; });
  }

  // While iteration i is sampled with version i - lag, training may have published all versions up to i: lag + 1 of them must
  // stay readable. At lag 0 that is one, and it may be the live weights themselves, which do not change before the iteration is
  // complete. A path without the trainer samples while that goes on: then the live weights will not do.
  int64_t readable_versions(const DraftModel& model) const {
    if (model.sampler < 0) return 0;
    if (model.updater < 0) return 1;
    return std::max<int64_t>(plan_.schedule.policy_lag + 1, model.sampled_apart ? 2 : 1);
  }

  // Nothing holds more than is in flight, but for a node whose micro-batches nobody reads any more: they are not in flight.
  void add_tokens() {
    for (const DraftPath& path : draft_.paths) {
      const int64_t in_flight = path.capacity.in_flight_tokens;
      for (size_t i = 0; i < path.members.size(); ++i) {
        const int64_t worst = path.proof.worst_tokens[i];
        node(position(path.members[i])).worst_tokens = path.proof.holds[i] ? std::min(worst, in_flight) : worst;
      }
      node(position(path.source)).worst_tokens = path.capacity.group_tokens;  // the group that waits to be admitted
      node(position(path.maker())).worst_tokens = in_flight;
    }
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
    const bool is_source = from.type->kind == NodeKind::kSource;
    if (!is_source || !draft_.path_of(from)->rollout) {
      plan_.effective.push_back({table, "on", sluice::quoted(from.executor),
                                 spec.on.text.empty() ? "default" : origin_of(spec.on.where), /*harmless=*/true});
    }
    if (const Name& prefix = spec.metrics_prefix; !prefix.text.empty()) {
      plan_.effective.push_back(
          {table, "metrics_prefix", sluice::quoted(prefix.text), origin_of(prefix.where), /*harmless=*/true});
    }
    // Shown where they say something: most pipelines have one source that takes part in every iteration.
    if (is_source && (draft_.paths.size() > 1 || from.source.measures())) {
      for (EffectiveKey& key : effective_keys(table, source_params().erased(), &from.source, spec.params))
        plan_.effective.push_back(std::move(key));
    }
    for (EffectiveKey& key :
         effective_keys(table, from.type->params, from.params.get(), spec.params, preset_scope(draft_, from, &from.preset_uses)))
      plan_.effective.push_back(std::move(key));
  }

  // The other two have the same result.
  void note_shard() {
    if (!plan_.shards_parameters()) return;
    const auto is_shard = [](const EffectiveKey& key) { return key.table == "cluster" && key.key == "shard"; };
    const auto key = std::ranges::find_if(plan_.effective, is_shard);
    key->harmless = false;
    key->why = "gradients are rounded in another way with it";
  }

  // A run that goes on may get more iterations, unless what was trained before depends on how many there are.
  void note_schedules() {
    std::vector<std::string> models;
    for (const PlanModel& model : plan_.models) {
      if (model.usage.updated && model.facts.follows_iterations) models.push_back(model.name);
    }
    std::vector<std::string> keys;
    for (const PlanNode& node : plan_.nodes) {
      for (const NamedSchedule& schedule : node.needs.schedules) {
        if (schedule.number.follows_run()) keys.push_back(schedule.key + " of " + node.name);
      }
    }
    if (models.empty() && keys.empty()) return;
    if (!models.empty()) keys.insert(keys.begin(), "the learning rate of " + join(models, ", "));
    const auto is_iterations = [](const EffectiveKey& key) { return key.table == "pipeline" && key.key == "iterations"; };
    const auto key = std::ranges::find_if(plan_.effective, is_iterations);
    key->harmless = false;
    key->why = join(keys, ", ") + (keys.size() == 1 ? " follows it" : " follow it");
  }

  Draft& draft_;
  Plan& plan_;
  std::vector<int> position_;  // by draft index
};

}  // namespace

void assemble_plan(Draft& draft) { Assembly(draft).run(); }

}  // namespace sluice::engine::checking
