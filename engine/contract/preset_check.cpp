#include "engine/contract/preset_check.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "base/text/strings.h"

namespace sluice::engine {
namespace {

void report(Problems& problems, const char* kind, const SourceSpan& where, std::string message, std::string caret,
            std::string help = {}) {
  problems.push_back({.kind = kind,
                      .where = where,
                      .message = std::move(message),
                      .caret = std::move(caret),
                      .notes = {},
                      .help = std::move(help)});
}

std::string list_of_presets(const Registry& registry) {
  std::vector<std::string> names;
  for (const auto& [name, preset] : registry.presets()) names.push_back(sluice::quoted(name));
  return join(names, ", ");
}

const ParamInfo* find_info(const std::vector<ParamInfo>& infos, std::string_view name) {
  const auto found = std::ranges::find(infos, name, &ParamInfo::name);
  return found == infos.end() ? nullptr : &*found;
}

std::vector<ParamInfo> params_of_all(const Registry& registry, const std::string& kind) {
  std::vector<ParamInfo> infos;
  for (const auto& [name, component] : registry.components()) {
    if (name.first != kind) continue;
    for (ParamInfo& info : component.params.infos()) infos.push_back(std::move(info));
  }
  return infos;
}

// The parameters of what a preset calls `of`; nothing where the registry has no such type.
std::optional<std::vector<ParamInfo>> params_of(const Registry& registry, const std::string& of) {
  const std::string type = of.substr(0, of.find('.'));
  std::vector<ParamInfo> infos;
  if (type.ends_with(":*")) {
    infos = params_of_all(registry, type.substr(0, type.size() - 2));
  } else if (const size_t colon = type.find(':'); colon != std::string::npos) {
    const ComponentType* component = registry.find_component(type.substr(0, colon), type.substr(colon + 1));
    if (component == nullptr) return std::nullopt;
    infos = component->params.infos();
  } else if (type == "model" && registry.model_type() != nullptr) {
    infos = registry.model_type()->params().infos();
  } else if (const NodeType* node = registry.find(type)) {
    infos = node->params.infos();
  } else {
    return std::nullopt;
  }
  if (type.size() == of.size()) return infos;
  const ParamInfo* table = find_info(infos, of.substr(type.size() + 1));
  if (table == nullptr || table->kind != ParamKind::kTable) return std::nullopt;
  return table->children;
}

void check_names(const Preset& preset, const Registry& registry, Problems& problems) {
  for (const PresetValue& value : preset.values) {
    const auto params = params_of(registry, value.of);
    const std::string what = "preset " + sluice::quoted(preset.name) + " sets " + value.key + " of " + value.of;
    if (!params)
      report(problems, "unknown-node-type", value.value.where, what + ", which is no type of this program", {});
    else if (find_info(*params, value.key) == nullptr)
      report(problems, "unknown-key", value.value.where, what + ", which has no such parameter", {});
  }
}

// Every table within `params` is written, so that their keys are bound too.
Table with_tables(const ParamTable& params) {
  Table table;
  for (const Param& param : params.params()) {
    if (param.info.kind == ParamKind::kTable) table.entries.push_back({param.info.name, {}, {Table{}, {}, {}}});
  }
  return table;
}

bool says_of(const Preset& preset, const std::string& type) {
  return std::ranges::any_of(preset.values, [&](const PresetValue& v) { return v.of == type || v.of.starts_with(type + "."); });
}

// What binding says of the values; what a pipeline would have to write is not missing here.
void check_values(const Preset& preset, const Registry& registry, Problems& problems) {
  Problems found;
  const auto context = [&](std::string of) {
    const std::string owner = "preset " + sluice::quoted(preset.name) + ", " + of;
    return BindContext{registry, found, owner, {.preset = &preset, .of = std::move(of), .inside = {}, .uses = nullptr}};
  };
  for (const auto& [name, type] : registry.nodes()) {
    if (!says_of(preset, name)) continue;
    BindContext of_node = context(name);
    type.bind(with_tables(type.params), of_node);
  }
  for (const auto& [key, type] : registry.components()) {
    if (!says_of(preset, key.first + ":" + key.second)) continue;
    BindContext of_component = context(key.first + ":" + key.second);
    type.make(with_tables(type.params), of_component);
  }
  if (const ModelType* type = registry.model_type()) {
    BindContext of_model = context("model");
    ModelSpec model{{"model", {}}, with_tables(type->params())};
    ModelFacts facts;
    type->bind(model, of_model, facts);
  }
  std::ranges::copy_if(found, std::back_inserter(problems), [](const Problem& p) { return p.kind != "missing-key"; });
}

}  // namespace

const Preset* choose_preset(const Registry& registry, const std::string& name, const SourceSpan& where, Problems& problems) {
  const auto& presets = registry.presets();
  const auto found = presets.find(name);
  if (found == presets.end()) {
    std::vector<std::string> names;
    for (const auto& [known, preset] : presets) names.push_back(known);
    const std::string near = did_you_mean(name, names);
    report(problems, "unknown-choice", where, "there is no preset " + sluice::quoted(name),
           near.empty() ? std::string() : "did you mean " + sluice::quoted(near) + "?",
           presets.empty() ? "this program knows no presets; a plugin can add one" : "known: " + list_of_presets(registry));
    return nullptr;
  }
  Problems wrong = preset_problems(found->second, registry);
  problems.insert(problems.end(), wrong.begin(), wrong.end());
  return wrong.empty() ? &found->second : nullptr;
}

Problems preset_problems(const Preset& preset, const Registry& registry) {
  Problems problems;
  check_names(preset, registry, problems);
  check_values(preset, registry, problems);
  return problems;
}

}  // namespace sluice::engine
