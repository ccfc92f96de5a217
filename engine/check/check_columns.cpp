#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/text/strings.h"
#include "engine/check/check_draft.h"

namespace sluice::engine::checking {
namespace {

struct Written {
  int node;
  const ColumnSpec* spec;
};

// Who writes each column, by path and name. Two writers on one path are reported; the first one counts.
using Writers = std::map<std::pair<int, std::string>, Written>;

std::string type_text(const ColumnSpec& column) { return std::string(name_of(column.dtype)) + " per " + name_of(column.extent); }

void report_second_writer(Draft& draft, const DraftNode& node, const DraftNode& first, const std::vector<ColumnSpec>& columns) {
  const bool both_make_groups = node.type->kind != NodeKind::kOrdinary && first.type->kind != NodeKind::kOrdinary;
  if (both_make_groups) return;  // two sources, or a source that does the work of the rollout: reported as that
  draft.error("column-written-twice", place_of(node),
              "'" + node.name() + "' writes " + column_names(columns) + ", which '" + first.name() + "' writes too", {},
              "a column has one writer: take one of the nodes away, or give its column another name if a parameter names it");
}

Writers collect_writers(Draft& draft) {
  Writers writers;
  for (size_t i = 0; i < draft.nodes.size(); ++i) {
    const DraftNode& node = draft.nodes[i];
    if (!node.needs) continue;
    std::map<int, std::vector<ColumnSpec>> written_before;  // by node
    for (const ColumnSpec& column : node.needs->writes) {
      const auto [found, first] = writers.emplace(std::pair(node.path, column.name), Written{static_cast<int>(i), &column});
      if (!first) written_before[found->second.node].push_back(column);
    }
    for (const auto& [first, columns] : written_before) report_second_writer(draft, node, draft.node(first), columns);
  }
  return writers;
}

// All columns that `input` hands on, in the order of their writers.
std::vector<std::string> columns_from(const Draft& draft, int input) {
  std::vector<std::string> names;
  for (const int index : draft.order) {
    const DraftNode& node = draft.node(index);
    if (!node.needs || (index != input && !draft.before(index, input))) continue;
    for (const ColumnSpec& column : node.needs->writes) names.push_back(column.name);
  }
  return names;
}

std::vector<std::string> arrival_notes(const Draft& draft, const DraftNode& node) {
  std::vector<std::string> notes;
  for (const int input : node.inputs) {
    const std::vector<std::string> names = columns_from(draft, input);
    notes.push_back("'" + node.name() + "' gets from '" + draft.node(input).name() +
                    "': " + (names.empty() ? "nothing" : join(names, ", ")));
  }
  return notes;
}

/// Remedies for a column that is missing. Asks all types of the registry for their needs, once and only when something is
/// missing.
class Remedies {
 public:
  explicit Remedies(const Draft& draft) : draft_(draft) {}

  std::string for_missing(const DraftNode& node, int index, const ColumnSpec& column, const Writers& writers) {
    const auto writer = writers.find({node.path, column.name});
    if (writer != writers.end()) return for_elsewhere(node, index, writer->second.node);
    const std::string replacing = type_instead_of(node, index);
    std::string help = types_that_write(column);
    if (!replacing.empty())
      help += (help.empty() ? "use type " : ", or use type ") + sluice::quoted(replacing) + ", which does without " + column.name;
    return help.empty() ? types_that_could_write(column) : help;
  }

 private:
  std::string for_elsewhere(const DraftNode& node, int index, int writer) const {
    const std::string& name = draft_.node(writer).name();
    if (draft_.before(index, writer)) return "'" + name + "' writes it, but works on what '" + node.name() + "' hands on";
    std::vector<std::string> inputs;
    for (const Name& input : node.spec->inputs) inputs.push_back(sluice::quoted(input.text));
    inputs.push_back(sluice::quoted(name));
    return "'" + name + "' writes it: inputs = [" + join(inputs, ", ") + "]";
  }

  // All of them. Ordinary nodes first: they can be added to what is there.
  std::string types_that_write(const ColumnSpec& column) {
    std::vector<std::string> ordinary, makers;
    for (const DefaultNode& type : all()) {
      if (!writes(type.needs, column)) continue;
      const std::string name = sluice::quoted(type.type->info.type);
      if (type.type->kind == NodeKind::kOrdinary)
        ordinary.push_back(name);
      else
        makers.push_back((type.type->kind == NodeKind::kSource ? "a source of type " : "a rollout of type ") + name);
    }
    const std::string made = either(makers) + " writes it";
    if (ordinary.empty()) return makers.empty() ? std::string() : made;
    return "add a node of type " + either(ordinary) + " and name it in inputs" + (makers.empty() ? "" : "; " + made + " too");
  }

  static std::string either(std::vector<std::string> names) {
    constexpr size_t kListed = 4;
    const bool more = names.size() > kListed;
    if (more) names.resize(kListed);
    return join(names, " or ") + (more ? ", ..." : "");
  }

  // Types that name one of their columns by a parameter, as `writes = "old_logprobs"`: each such type is bound with that name and
  // asked.
  std::string types_that_could_write(const ColumnSpec& column) const {
    std::vector<std::string> ways;
    for (const auto& [name, type] : draft_.registry.nodes()) {
      for (const Param& param : type.params.params()) {
        if (param.info.kind != ParamKind::kString) continue;
        const auto named = with_default_params(type, draft_.registry, {{param.info.name, {}, Value{column.name, {}, {}}}});
        if (named && writes(named->needs, column))
          ways.push_back("type " + sluice::quoted(name) + " does with " + param.info.name + " = " + sluice::quoted(column.name));
      }
    }
    return "no node type that this program knows writes '" + column.name + "' by itself; " +
           (ways.empty() ? "a plugin can" : join(ways, ", "));
  }

  // Writes all that this one writes and reads only what is there.
  std::string type_instead_of(const DraftNode& node, int index) {
    std::set<std::string> there;
    for (const int input : node.inputs) {
      for (std::string& name : columns_from(draft_, input)) there.insert(std::move(name));
    }
    const auto serves = [&](const DefaultNode& other) {
      return other.type != node.type && other.type->kind == node.type->kind && !node.needs->writes.empty() &&
             std::all_of(node.needs->writes.begin(), node.needs->writes.end(),
                         [&](const ColumnSpec& c) { return !is_read_behind(index, c.name) || writes(other.needs, c); }) &&
             std::any_of(node.needs->writes.begin(), node.needs->writes.end(),
                         [&](const ColumnSpec& c) { return writes(other.needs, c); }) &&
             std::all_of(other.needs.reads.begin(), other.needs.reads.end(),
                         [&](const ColumnSpec& c) { return there.contains(c.name); });
    };
    const auto found = std::find_if(all().begin(), all().end(), serves);
    return found == all().end() ? std::string() : found->type->info.type;
  }

  bool is_read_behind(int index, const std::string& column) const {
    return std::any_of(draft_.order.begin(), draft_.order.end(), [&](int other) {
      const auto& needs = draft_.node(other).needs;
      return needs && draft_.before(index, other) &&
             std::any_of(needs->reads.begin(), needs->reads.end(), [&](const ColumnSpec& c) { return c.name == column; });
    });
  }

  static bool writes(const NodeNeeds& needs, const ColumnSpec& column) {
    return std::find(needs.writes.begin(), needs.writes.end(), column) != needs.writes.end();
  }

  const std::vector<DefaultNode>& all() {
    if (!types_) {
      types_.emplace();
      for (const auto& [name, type] : draft_.registry.nodes()) {
        if (auto node = with_default_params(type, draft_.registry)) types_->push_back(std::move(*node));
      }
    }
    return *types_;
  }

  const Draft& draft_;
  std::optional<std::vector<DefaultNode>> types_;
};

/// Which nodes a missing column was reported at: what is after them would only repeat it.
using Missing = std::map<std::string, std::vector<int>>;

void check_reads(Draft& draft, int index, const Writers& writers, Remedies& remedies, Missing& missing) {
  const DraftNode& node = draft.node(index);
  std::set<std::string> seen;
  for (const ColumnSpec& column : node.needs->reads) {
    if (!seen.insert(column.name).second) continue;
    const auto writer = writers.find({node.path, column.name});
    const bool arrives = writer != writers.end() && draft.before(writer->second.node, index);
    if (arrives && !(*writer->second.spec == column)) {
      draft.error("column-mismatch", place_of(node),
                  "'" + node.name() + "' reads column '" + column.name + "' as " + type_text(column) + ", but '" +
                      draft.node(writer->second.node).name() + "' writes it as " + type_text(*writer->second.spec));
    }
    if (arrives || !node.sealed) continue;
    auto& reported = missing[column.name];
    const bool known = std::any_of(reported.begin(), reported.end(), [&](int earlier) { return draft.before(earlier, index); });
    reported.push_back(index);
    if (known) continue;
    std::vector<std::string> notes = arrival_notes(draft, node);
    for (std::string& note : preset_notes(draft, node)) notes.push_back(std::move(note));
    draft.error("column-not-written", place_of(node),
                "node '" + node.name() + "' reads column '" + column.name + "', which nothing before it writes",
                "type " + sluice::quoted(node.type->info.type) + " reads " + column_names(node.needs->reads),
                remedies.for_missing(node, index, column, writers), std::move(notes));
  }
}

// A setting's value as the type writes it; flags are stated as 0 and 1.
std::string setting_text(const DraftNode& one, const DraftNode& other, const std::string& setting, const ScheduledNumber& value) {
  const auto is_flag = [&](const DraftNode& node) {
    const Param* param = node.type->params.find(setting);
    return param != nullptr && param->info.kind == ParamKind::kBoolean;
  };
  if (is_flag(one) || is_flag(other)) return value.is(0) ? "false" : "true";
  return value.written();
}

// A node may state a setting that it has no key for: then the other one has to follow.
std::string agreement_help(const DraftNode& first, const DraftNode& node, const std::string& setting,
                           const ScheduledNumber& of_first, const ScheduledNumber& of_node) {
  if (node.type->params.find(setting) == nullptr)
    return setting + " = " + setting_text(first, node, setting, of_node) + " in '" + first.name() + "'";
  const bool in_both = first.type->params.find(setting) != nullptr;
  return setting + " = " + setting_text(first, node, setting, of_first) + " in " + (in_both ? "both" : "'" + node.name() + "'");
}

// Settings that several nodes of a path state, such as the temperature, must be alike.
void check_agreement(Draft& draft) {
  std::map<std::pair<int, std::string>, int> first;
  for (size_t i = 0; i < draft.nodes.size(); ++i) {
    const DraftNode& node = draft.nodes[i];
    if (!node.bound) continue;
    for (const auto& [setting, value] : node.needs->must_agree) {
      const auto [found, is_first] = first.emplace(std::pair(node.path, setting), static_cast<int>(i));
      const DraftNode& other = draft.node(found->second);
      const ScheduledNumber expected = is_first ? value : other.needs->must_agree.at(setting);
      if (value == expected) continue;
      draft.error("settings-disagree", place_of(node, setting),
                  "'" + other.name() + "' and '" + node.name() + "' must have the same " + setting,
                  setting + " is " + setting_text(other, node, setting, expected) + " in '" + other.name() + "' and " +
                      setting_text(other, node, setting, value) + " here",
                  agreement_help(other, node, setting, expected, value));
    }
  }
}

}  // namespace

void check_columns(Draft& draft) {
  const Writers writers = collect_writers(draft);
  Remedies remedies(draft);
  Missing missing;
  for (const int index : draft.order) {
    if (draft.node(index).needs) check_reads(draft, index, writers, remedies, missing);
  }
  check_agreement(draft);
}

}  // namespace sluice::engine::checking
