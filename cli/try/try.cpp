#include "cli/try/try.h"

#include <algorithm>
#include <iostream>
#include <iterator>
#include <sstream>

#include "base/error.h"
#include "base/text/strings.h"
#include "cli/pipeline/load.h"
#include "cli/process/exit_codes.h"
#include "cli/terminal/terminal.h"
#include "cli/try/columns_json.h"
#include "cli/try/commands.h"
#include "cli/try/try_kl_controller.h"
#include "cli/try/try_objective.h"
#include "cli/try/try_preference.h"
#include "cli/types/type_names.h"
#include "dsl/parse.h"
#include "engine/contract/preset_check.h"
#include "engine/run/try_node.h"
#include "nodes/columns/column_json.h"
#include "nodes/columns/columns.h"

namespace sluice::cli {
namespace {

using engine::ColumnSpec;
using engine::ComponentType;
using engine::NodeType;
using engine::Registry;

constexpr std::string_view kObjectivePrefix = "objective:";

// The user wrote `lambda=0.9`; the pipeline language calls it nodes.gae.lambda. Problems must show what the user wrote.
void hide_prefix(SourceSpan& where, const std::string& prefix) {
  if (!where.known() || !where.source->text.starts_with(prefix)) return;
  where.source = std::make_shared<SourceText>(SourceText{where.source->name, where.source->text.substr(prefix.size())});
  where.column = std::max(1, where.column - static_cast<int>(prefix.size()));
}

void throw_if_wrong(Problems problems, const std::string& prefix) {
  if (!has_errors(problems)) return;
  for (Problem& problem : problems) hide_prefix(problem.where, prefix);
  throw UserError(std::move(problems));
}

void throw_if_idle(const engine::PresetScope& scope) {
  if (scope.preset == nullptr || !scope.uses->empty()) return;
  throw UserError("preset " + sluice::quoted(scope.preset->name) + " has no value for " + scope.of,
                  "rlhf-run describe preset:" + scope.preset->name + " lists what it has");
}

// The --set arguments as the table of a node, read by the pipeline language itself.
engine::Table parameters(const std::string& what, const std::vector<std::string>& sets) {
  const std::string prefix = "nodes.it.";
  std::vector<std::string> overrides;
  for (const std::string& set : sets) {
    const std::string_view key = trim(std::string_view(set).substr(0, set.find('=')));
    if (key == "type" || key == "inputs" || key == "on" || key == "metrics_prefix")
      throw UserError("--set " + set + ": only parameters can be set here");
    overrides.push_back(prefix + set);
  }
  dsl::LoadResult result = dsl::parse_pipeline("nodes.it.type = \"it\"\n", "rlhf-run try " + what, ".", overrides);
  throw_if_wrong(std::move(result.problems), prefix);
  SLUICE_CHECK(result.spec.nodes.size() == 1, "the node of the parameters is missing");
  engine::Table table = std::move(result.spec.nodes.front().params);
  table.where = {};  // no file to point into where a key is missing
  return table;
}

[[noreturn]] void throw_unknown(const Registry& registry, const std::string& what) {
  const std::vector<std::string> names = tried_names(registry);
  const std::string nearest = did_you_mean(what, names);
  const bool prefix_missing = std::ranges::find(names, std::string(kObjectivePrefix) + what) != names.end();
  throw UserError("no node type or objective is called " + sluice::quoted(what),
                  prefix_missing    ? "an objective is written objective:" + what
                  : nearest.empty() ? "rlhf-run nodes lists them"
                                    : "did you mean " + nearest + "?");
}

// What the columns of the input may be: those that are read, then the standard ones.
std::vector<ColumnSpec> known_columns(std::vector<ColumnSpec> reads) {
  for (ColumnSpec& column : nodes::columns::standard()) {
    if (std::ranges::find(reads, column.name, &ColumnSpec::name) == reads.end()) reads.push_back(std::move(column));
  }
  return reads;
}

std::string read_all(std::istream& in) { return {std::istreambuf_iterator<char>(in), {}}; }

// A node that writes something of each action is asked for nothing where no column says how many there are.
void require_actions(const engine::NodeNeeds& needs, const ColumnsInput& input) {
  const auto written = std::ranges::find(needs.writes, engine::Extent::kAction, &ColumnSpec::extent);
  if (written == needs.writes.end() || input.layout().samples() == 0 || input.tells_lengths()) return;
  throw UserError("'" + written->name + "' has a number for each action, and no column says how many actions a sample has",
                  "a column with a list for each sample tells it, such as \"rollout_logprobs\": [[-0.1, -0.2], ...]");
}

Json try_node_type(const Registry& registry, const NodeType& type, const engine::Table& table, const engine::PresetScope& preset,
                   std::istream& in) {
  Problems problems;
  engine::BindContext context{registry, problems, "type " + sluice::quoted(type.info.type), preset};
  const auto params = type.bind(table, context);
  throw_if_wrong(std::move(problems), "nodes.it.");
  throw_if_idle(preset);

  const engine::NodeNeeds needs = type.needs(params.get());
  if (!needs.models.empty()) {
    throw UserError("type " + sluice::quoted(type.info.type) + " needs a model; only nodes without one can be tried alone",
                    "rlhf-run model tokenize, logprobs and sample try a model");
  }
  std::vector<ColumnSpec> columns = needs.reads;
  for (const engine::ReadsChoice& choice : needs.choices)
    columns.insert(columns.end(), choice.columns.begin(), choice.columns.end());
  const ColumnsInput input(read_all(in), known_columns(std::move(columns)));
  require_actions(needs, input);
  const auto outcome =
      engine::try_node({.type = &type, .params = params, .resources = {}, .groups = input.groups(), .groups_per_batch = {}});
  Json result{{"columns", columns_to_json(outcome.columns, input.layout())}};
  if (needs.drops_groups) result["dropped_groups"] = outcome.dropped_groups;
  if (needs.writes.empty())  // all that it makes
    for (const auto& [name, value] : outcome.metrics) result["metrics"][name] = real_to_json(value);
  return result;
}

Json try_component(const Registry& registry, const ComponentType& type, const engine::Table& table,
                   const engine::PresetScope& preset, std::istream& in) {
  Problems problems;
  engine::BindContext context{registry, problems, "objective " + sluice::quoted(type.type), preset};
  const auto object = type.make(table, context).object;
  throw_if_wrong(std::move(problems), "nodes.it.");
  throw_if_idle(preset);
  if (type.kind == nodes::PreferenceObjective::kComponent) {
    const TriedPreference preference(std::static_pointer_cast<const nodes::PreferenceObjective>(object));
    return preference.run(ColumnsInput(read_all(in), known_columns(preference.reads())));
  }
  const TriedObjective objective(type.kind, object);
  return objective.run(ColumnsInput(read_all(in), known_columns(objective.reads())));
}

Json try_kl_controller(const Registry& registry, const ComponentType& type, const engine::Table& table, std::istream& in) {
  Problems problems;
  engine::BindContext context{registry, problems, "kl_controller " + sluice::quoted(type.type)};
  const auto object = type.make(table, context).object;
  throw_if_wrong(std::move(problems), "nodes.it.");
  return next_coefficient(*std::static_pointer_cast<const nodes::KlController>(object), read_all(in));
}

const ComponentType* find_objective(const Registry& registry, const std::string& what) {
  for (const std::string kind :
       {nodes::Objective::kComponent, nodes::ValueObjective::kComponent, nodes::PreferenceObjective::kComponent}) {
    for (const std::string& prefix : {std::string(kObjectivePrefix), kind + ":"}) {
      if (!what.starts_with(prefix)) continue;
      if (const ComponentType* type = registry.find_component(kind, what.substr(prefix.size()))) return type;
    }
  }
  return nullptr;
}

// By its name, or as `nodes` lists it.
const ComponentType* find_controller(const Registry& registry, const std::string& what) {
  const std::string kind = nodes::KlController::kComponent, prefix = kind + ":";
  return registry.find_component(kind, what.starts_with(prefix) ? what.substr(prefix.size()) : what);
}

// Without a name: no preset. `of` is what presets call the type.
engine::PresetScope preset_scope(const Registry& registry, const std::string& name, const std::string& of,
                                 std::vector<engine::PresetUse>& uses) {
  if (name.empty()) return {};
  Problems problems;
  const engine::Preset* preset = engine::choose_preset(registry, name, {}, problems);
  throw_if_wrong(std::move(problems), {});
  return {.preset = preset, .of = of, .inside = {}, .uses = &uses};
}

}  // namespace

int run_try(const Registry& registry, const std::string& what, const std::vector<std::string>& sets, const std::string& preset,
            std::istream& in, std::ostream& out) {
  const NodeType* node = registry.find(what);
  const ComponentType* objective = find_objective(registry, what);
  const ComponentType* controller = find_controller(registry, what);
  if (node == nullptr && objective == nullptr && controller == nullptr) throw_unknown(registry, what);
  const engine::Table table = parameters(what, sets);
  if (node == nullptr && controller != nullptr) {
    out << nodes::dump_json(try_kl_controller(registry, *controller, table, in)) << '\n';
    return kDone;
  }
  std::vector<engine::PresetUse> uses;
  const auto scope = preset_scope(registry, preset, node != nullptr ? what : objective->kind + ":" + objective->type, uses);
  const Json result =
      node != nullptr ? try_node_type(registry, *node, table, scope, in) : try_component(registry, *objective, table, scope, in);
  out << nodes::dump_json(result) << '\n';
  return kDone;
}

int try_one(const std::string& what, const std::vector<std::string>& sets, const std::string& preset,
            const std::vector<std::string>& plugins) {
  const auto registry = make_registry(plugins);
  std::ostringstream out;
  const int code = run_try(*registry, what, sets, preset, std::cin, out);
  print_text(out.str());
  return code;
}

}  // namespace sluice::cli
