#include "engine/contract/registry.h"

#include <algorithm>

#include "base/error.h"
#include "base/text/strings.h"
#include "engine/contract/key_help.h"
#include "engine/contract/params/declared_params.h"
#include "engine/contract/plugin_code.h"
#include "engine/contract/settings.h"
#include "engine/contract/spec/node_keys.h"

namespace sluice::engine {

const char* name_of(NodeKind kind) {
  return kind == NodeKind::kSource ? "source" : kind == NodeKind::kRollout ? "rollout" : "ordinary";
}

namespace {

[[noreturn]] void throw_taken(const std::string& what, const std::string& origin, const std::string& taken_by) {
  throw UserError(Problem{.kind = "type-taken",
                          .where = {},
                          .message = what + " of " + origin + " is already taken by " + taken_by,
                          .caret = {},
                          .notes = {},
                          .help = "give it another name, or do not load both"});
}

void refuse_undeclarable(const std::string& type, const ParamTable& params) {
  if (const std::string fault = fault_of_declared(params.infos()); !fault.empty()) throw InternalError(type + ": " + fault);
}

// The functions of a plugin's type, whose exceptions become errors that name it.
NodeType guarded(NodeType type) {
  const std::string of = "of node type " + sluice::quoted(type.info.type) + " of plugin " + type.origin;
  type.bind = [bind = std::move(type.bind), of](const Table& table, BindContext& context) {
    return call_plugin("the check " + of + " failed", [&] { return bind(table, context); });
  };
  type.needs = [needs = std::move(type.needs), of](const void* params) {
    return call_plugin("what is needed " + of + " is not known", [&] { return needs(params); });
  };
  type.make = [make = std::move(type.make), of](const void* params, NodeResources& resources) {
    return call_plugin("node '" + resources.node + "': the constructor " + of + " failed",
                       [&] { return make(params, resources); });
  };
  if (!type.look_at_data) return type;
  type.look_at_data = [look_at = std::move(type.look_at_data), of](const void* params, DataLook& look) {
    call_plugin("the look at the data " + of + " failed", [&] { look_at(params, look); });
  };
  return type;
}

ComponentType guarded(ComponentType type) {
  const std::string of = type.kind + " " + sluice::quoted(type.type) + " of plugin " + type.origin;
  type.make = [make = std::move(type.make), of](const Table& table, BindContext& context) {
    return call_plugin("the check or the constructor of " + of + " failed", [&] { return make(table, context); });
  };
  return type;
}

}  // namespace

const NodeType* Registry::find(const std::string& type) const {
  const auto found = nodes_.find(type);
  return found == nodes_.end() ? nullptr : &found->second;
}

const ComponentType* Registry::find_component(const std::string& kind, const std::string& type) const {
  const auto found = components_.find({kind, type});
  return found == components_.end() ? nullptr : &found->second;
}

void Registry::insert(NodeType type) {
  const std::string name = type.info.type;
  SLUICE_CHECK(!name.empty(), "a node type has no name: its describe() must call type(name, summary)");
  for (const NodeKey& key : node_keys()) {
    SLUICE_CHECK(type.params.find(key.name) == nullptr,
                 "node type " + sluice::quoted(name) + " declares parameter " + key.name + ", which every node has");
  }
  const auto of_source = [](const Param& param) { return source_params().erased().find(param.info.name) != nullptr; };
  const auto taken_key = std::ranges::find_if(type.params.params(), of_source);
  SLUICE_CHECK(
      type.kind != NodeKind::kSource || taken_key == type.params.params().end(),
      "source type " + sluice::quoted(name) + " declares parameter " + taken_key->info.name + ", which every source has");
  refuse_undeclarable("node type " + sluice::quoted(name), type.params);
  if (const NodeType* taken = find(name)) throw_taken("node type " + sluice::quoted(name), origin_, taken->origin);
  type.origin = origin_;
  nodes_.emplace(name, origin_ == kBuiltin ? std::move(type) : guarded(std::move(type)));
}

void Registry::insert(ComponentType type) {
  SLUICE_CHECK(!type.type.empty(), "a component has no name: its describe() must call type(name, summary)");
  SLUICE_CHECK(type.params.find("type") == nullptr,
               type.kind + " " + sluice::quoted(type.type) + " declares parameter type, which every one has");
  refuse_undeclarable(type.kind + " " + sluice::quoted(type.type), type.params);
  if (const ComponentType* taken = find_component(type.kind, type.type)) {
    throw_taken(type.kind + " " + sluice::quoted(type.type), origin_, taken->origin);
  }
  type.origin = origin_;
  std::pair<std::string, std::string> key{type.kind, type.type};
  components_.emplace(std::move(key), origin_ == kBuiltin ? std::move(type) : guarded(std::move(type)));
}

void Registry::add_preset(Preset preset) {
  if (const auto taken = presets_.find(preset.name); taken != presets_.end())
    throw_taken("preset " + sluice::quoted(preset.name), origin_, taken->second.origin);
  preset.origin = origin_;
  std::string name = preset.name;
  presets_.emplace(std::move(name), std::move(preset));
}

void Registry::add_device_kind(DeviceKind kind) {
  SLUICE_CHECK(device_name(kind.name + ":0"), sluice::quoted(kind.name) + " is no name of a kind of devices");
  if (const auto taken = device_kinds_.find(kind.name); taken != device_kinds_.end())
    throw_taken("kind of devices " + sluice::quoted(kind.name), origin_, taken->second.second);
  std::string name = kind.name;
  device_kinds_.emplace(std::move(name), std::pair{std::move(kind), origin_});
}

const DeviceKind* Registry::find_device_kind(const std::string& name) const {
  const auto found = device_kinds_.find(name);
  return found == device_kinds_.end() ? nullptr : &found->second.first;
}

std::vector<std::string> Registry::component_types(const std::string& kind) const {
  std::vector<std::string> types;
  for (const auto& [key, type] : components_) {
    if (key.first == kind) types.push_back(key.second);
  }
  return types;
}

bool Registry::is_device(std::string_view name) const {
  const auto device = device_name(name);
  return device && find_device_kind(device->kind) != nullptr;
}

std::vector<std::string> Registry::device_names() const {
  std::vector<std::string> names;
  for (const auto& [name, kind] : device_kinds_) names.push_back(name + ":N");
  return names;
}

KeyHelp Registry::help_for_unknown_key(const std::string& key, const std::vector<std::string>& known,
                                       const std::string& owner) const {
  return engine::help_for_unknown_key(key, known, owner, *this);
}

}  // namespace sluice::engine
