#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/text/strings.h"
#include "engine/check/check_draft.h"
#include "engine/contract/params/foreign_names.h"
#include "engine/contract/params/param_reports.h"

namespace sluice::engine::checking {
namespace {

std::vector<std::string> known_types(const Registry& registry) {
  std::vector<std::string> names;
  for (const auto& [name, type] : registry.nodes()) names.push_back(name);
  return names;
}

// The reader of the file says the same in the same words, so that both together are one problem.
void report_no_type(Draft& draft, const DraftNode& node) {
  draft.error("node-without-type", node.spec->name.where, "node '" + node.name() + "' has no type",
              "write type = \"...\" below it");
}

void report_unknown_type(Draft& draft, const DraftNode& node) {
  constexpr size_t kListed = 12;
  std::vector<std::string> known = known_types(draft.registry);
  std::string help = foreign_type_text(node.spec->type.text, "node");
  const std::string near = help.empty() ? did_you_mean(node.spec->type.text, known) : std::string();
  if (near.empty() && help.empty()) {
    const bool more = known.size() > kListed;
    if (more) known.resize(kListed);
    help = known.empty() ? "this program knows no node types; load a plugin"
                         : "known types: " + join(known, ", ") + (more ? ", ..." : "");
  }
  const SourceSpan where = node.spec->type.where.known() ? node.spec->type.where : place_of(node);
  draft.error("unknown-node-type", where, "there is no node type " + sluice::quoted(node.spec->type.text),
              near.empty() ? std::string() : "did you mean " + sluice::quoted(near) + "?", std::move(help));
}

// A column whose name is left empty is not asked for, like an optional model.
NodeNeeds needs_of(const DraftNode& node) {
  NodeNeeds needs = node.type->needs(node.params.get());
  std::erase_if(needs.reads, [](const ColumnSpec& column) { return column.name.empty(); });
  std::erase_if(needs.writes, [](const ColumnSpec& column) { return column.name.empty(); });
  return needs;
}

// A key that the type does not have, and that is a misspelt one of those that every source has.
bool is_meant_for_source(const DraftNode& node, const ParamTable& of_source, const std::string& key) {
  const auto names_of = [](const ParamTable& table) {
    std::vector<std::string> names;
    for (const Param& param : table.params()) names.push_back(param.info.name);
    return names;
  };
  return of_source.find(key) != nullptr ||
         (node.type->params.find(key) == nullptr && did_you_mean(key, names_of(node.type->params)).empty() &&
          !did_you_mean(key, names_of(of_source)).empty());
}

// What every source has is bound apart from what its type has.
Table take_source_keys(DraftNode& node, BindContext& context) {
  const ParamTable of_source = source_params().erased();
  Table common, own;
  common.where = own.where = node.spec->params.where;
  for (const Entry& entry : node.spec->params.entries)
    (is_meant_for_source(node, of_source, entry.key) ? common : own).entries.push_back(entry);
  of_source.bind(&node.source, common, context);
  return own;
}

void bind(Draft& draft, DraftNode& node) {
  if (node.spec->type.text.empty()) return report_no_type(draft, node);
  node.type = draft.registry.find(node.spec->type.text);
  if (node.type == nullptr) return report_unknown_type(draft, node);
  const auto errors_before = std::count_if(draft.problems.begin(), draft.problems.end(),
                                           [](const Problem& p) { return p.severity == Severity::kError; });
  const std::string type = "type " + sluice::quoted(node.type->info.type);
  BindContext context{draft.registry, draft.problems, place_of(node).known() ? type : type + " of node '" + node.name() + "'",
                      preset_scope(draft, node, &node.preset_uses), draft.right.pipeline ? draft.plan.pipeline.iterations : 0};
  const size_t before = draft.problems.size();
  try {
    const bool is_source = node.type->kind == NodeKind::kSource;
    node.params = node.type->bind(is_source ? take_source_keys(node, context) : node.spec->params, context);
    if (node.params != nullptr && params_usable(*node.type, node.params.get())) node.needs = needs_of(node);
  } catch (const UserError& error) {
    draft.add("setting-unusable", error);
  }
  detail::give_place(draft.problems, before, place_of(node));
  const auto errors_after = std::count_if(draft.problems.begin(), draft.problems.end(),
                                          [](const Problem& p) { return p.severity == Severity::kError; });
  node.bound = node.needs && errors_before == errors_after;
}

void report_unknown_input(Draft& draft, const DraftNode& node, const Name& input) {
  std::vector<std::string> others;
  for (const DraftNode& other : draft.nodes) {
    if (&other != &node) others.push_back(other.name());
  }
  std::vector<std::string> removal = removal_notes(draft, "nodes." + input.text);
  const std::string near = removal.empty() ? did_you_mean(input.text, others) : std::string();
  std::string help;
  const auto& models = draft.spec.models;
  const bool is_model =
      std::any_of(models.begin(), models.end(), [&](const ModelSpec& model) { return model.name.text == input.text; });
  if (near.empty() && is_model) help = "a model is named by a parameter of the node, not in inputs";
  draft.error("unknown-input", input.where, "'" + node.name() + "' takes input from '" + input.text + "', which is not a node",
              near.empty() ? std::string() : "did you mean " + sluice::quoted(near) + "?", std::move(help), std::move(removal));
}

void resolve_inputs(Draft& draft, int index) {
  DraftNode& node = draft.node(index);
  if (node.type != nullptr && node.type->kind == NodeKind::kSource) return;  // reported by check_graph
  std::set<int> seen;
  for (const Name& input : node.spec->inputs) {
    const int from = draft.find_node(input.text);
    if (from < 0) {
      node.inputs_known = false;
      report_unknown_input(draft, node, input);
    } else if (from == index) {
      node.inputs_known = false;
      draft.error("input-itself", input.where, "'" + node.name() + "' takes input from itself",
                  "an iteration passes each node once");
    } else if (!seen.insert(from).second) {
      draft.error("written-twice", input.where, "'" + node.name() + "' names input '" + input.text + "' twice", "once is enough");
    } else {
      node.inputs.push_back(from);
      draft.node(from).outputs.push_back(index);
    }
  }
}

}  // namespace

void resolve_nodes(Draft& draft) {
  for (const NodeSpec& spec : draft.spec.nodes) {
    const int index = static_cast<int>(draft.nodes.size());
    DraftNode& node = draft.nodes.emplace_back();
    node.spec = &spec;
    if (!draft.node_index_.emplace(spec.name.text, index).second)
      draft.error("bad-name", place_of(node), "there are two nodes '" + node.name() + "'");
    // Of a name in a file the reader of the file has said so, at its very place.
    if (!is_plain_name(spec.name.text) && !spec.name.where.known()) {
      draft.error("bad-name", spec.name.where, sluice::quoted(spec.name.text) + " cannot be the name of a node",
                  "letters, digits, _ and -");
    }
    bind(draft, node);
  }
  for (size_t i = 0; i < draft.nodes.size(); ++i) resolve_inputs(draft, static_cast<int>(i));
}

}  // namespace sluice::engine::checking
