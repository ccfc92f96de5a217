#include "engine/contract/preset.h"

#include <algorithm>

#include "base/error.h"
#include "base/text/strings.h"
#include "engine/contract/registry.h"

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

const PresetValue* look_up(const std::vector<PresetValue>& values, std::string_view of, std::string_view key) {
  const auto found = std::ranges::find_if(values, [&](const PresetValue& value) { return value.of == of && value.key == key; });
  return found == values.end() ? nullptr : &*found;
}

// "objective:*" for "objective:ppo_clip"; empty for what is no component.
std::string every_one_of(std::string_view of) {
  const size_t colon = of.find(':');
  return colon == std::string_view::npos ? std::string() : std::string(of.substr(0, colon)) + ":*";
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

Preset::Preset(std::string name_, std::string summary_) : name(std::move(name_)), summary(std::move(summary_)) {
  where_.source = std::make_shared<const SourceText>(SourceText{.name = "preset " + name, .text = {}});
}

Preset& Preset::set(std::string of, std::string key, decltype(Value::data) data, std::string source) {
  SLUICE_CHECK(look_up(values, of, key) == nullptr, "preset " + name + " sets " + of + "." + key + " twice");
  values.push_back({std::move(of), std::move(key), {std::move(data), where_, {}}, std::move(source)});
  return *this;
}

const PresetValue* Preset::find(std::string_view of, std::string_view key) const {
  const PresetValue* own = look_up(values, of, key);
  return own != nullptr ? own : look_up(values, every_one_of(of), key);
}

PresetScope PresetScope::within(const std::string& key, std::string its_name) const {
  return {.preset = preset, .of = std::move(its_name), .inside = inside.empty() ? key : inside + "." + key, .uses = uses};
}

const Value* PresetScope::value_of(const std::string& key, bool given) const {
  const PresetValue* value = preset == nullptr ? nullptr : preset->find(of, key);
  if (value == nullptr) return nullptr;
  if (uses != nullptr) uses->push_back({inside, key, given});
  return &value->value;
}

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

std::string describe_text(const Preset& preset) {
  std::string text = preset.name + ": " + preset.summary + "\n\n  kind    preset" +
                     (preset.origin == "builtin" ? "" : ", from " + preset.origin) + "\n\n  values\n";
  size_t width = 0;
  const auto setting = [](const PresetValue& value) { return value.of + "." + value.key + " = " + toml_text(value.value); };
  for (const PresetValue& value : preset.values) width = std::max(width, setting(value).size());
  for (const PresetValue& value : preset.values) {
    const std::string words = setting(value);
    text += "    " + words + std::string(width - words.size(), ' ') + "  " + value.source + "\n";
  }
  return text;
}

}  // namespace sluice::engine
