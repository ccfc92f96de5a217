#pragma once

#include <any>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "engine/contract/contract.h"
#include "engine/contract/node.h"
#include "engine/contract/params/known_names.h"
#include "engine/contract/world/device_kind.h"

namespace sluice::engine {

/// The origin of types that no plugin brought.
inline constexpr const char* kBuiltin = "builtin";

enum class NodeKind { kSource, kRollout, kOrdinary };
const char* name_of(NodeKind kind);

/// A node type, type-erased. `bind` reports into the context and returns null only when nothing could be made of the table.
struct NodeType {
  NodeKind kind = NodeKind::kOrdinary;
  ContractInfo info;
  std::string origin;  // "builtin" or the plugin that brought it
  std::function<std::shared_ptr<const void>(const Table&, BindContext&)> bind;
  std::function<NodeNeeds(const void* params)> needs;
  std::function<std::unique_ptr<NodeBase>(const void* params, NodeResources&)> make;
  std::function<void(const void* params, DataLook&)> look_at_data;  // empty: it has no data, or does not look
  ParamTable params;

  bool is_builtin() const { return origin == kBuiltin; }
};

/// All node, component and model types, kinds of devices, and the presets, that a program knows. Filled before any pipeline is
/// checked, constant after; owned by main.
class Registry final : public KnownNames {
 public:
  /// Adds a node type: T derives from Node, Source or Rollout, has `static void describe(Contract<Params>&)` and a constructor
  /// T(const Params&) or T(const Params&, NodeResources&). Throws UserError if the name is taken, InternalError if what it
  /// describes cannot be (declared_params.h).
  template <class T>
  void add();

  /// Adds a component type: T derives from Base (with kComponent), has `static void describe(Contract<Params>&)` and T(const
  /// Params&).
  template <class Base, class T>
  void add_component();

  /// Throws UserError if the name is taken. Its values are checked when a pipeline names it: types may come later.
  void add_preset(Preset preset);

  /// Throws UserError if the name is taken.
  void add_device_kind(DeviceKind kind);

  void set_model_type(std::unique_ptr<ModelType> type) { model_type_ = std::move(type); }
  const ModelType* model_type() const { return model_type_.get(); }

  /// Types added from now on come from there.
  void set_origin(std::string origin) { origin_ = std::move(origin); }

  const NodeType* find(const std::string& type) const;
  const ComponentType* find_component(const std::string& kind, const std::string& type) const override;
  std::vector<std::string> component_types(const std::string& kind) const override;
  const std::map<std::string, NodeType>& nodes() const { return nodes_; }
  const std::map<std::pair<std::string, std::string>, ComponentType>& components() const { return components_; }
  const std::map<std::string, Preset>& presets() const { return presets_; }

  const DeviceKind* find_device_kind(const std::string& name) const override;

  /// Whether this is the name of a device, "cuda:0", there or not.
  bool is_device(std::string_view name) const;

  std::vector<std::string> device_names() const override;

  KeyHelp help_for_unknown_key(const std::string& key, const std::vector<std::string>& known,
                               const std::string& owner) const override;

 private:
  void insert(NodeType type);
  void insert(ComponentType type);

  std::map<std::string, NodeType> nodes_;
  std::map<std::pair<std::string, std::string>, ComponentType> components_;
  std::map<std::string, Preset> presets_;
  std::map<std::string, std::pair<DeviceKind, std::string>> device_kinds_;  // with their origin
  std::unique_ptr<ModelType> model_type_;
  std::string origin_ = kBuiltin;
};

namespace detail {

template <class P>
P params_of(void (*)(Contract<P>&));

template <class T>
using ParamsOf = decltype(params_of(&T::describe));

template <class T>
constexpr NodeKind node_kind() {
  if constexpr (std::is_base_of_v<Source, T>)
    return NodeKind::kSource;
  else if constexpr (std::is_base_of_v<Rollout, T>)
    return NodeKind::kRollout;
  else {
    static_assert(std::is_base_of_v<Node, T>, "a node type derives from Node, Source or Rollout");
    return NodeKind::kOrdinary;
  }
}

/// Binds a table by a contract, then runs the contract's own checks if the table itself was right.
template <class P>
std::shared_ptr<P> bind_params(const Contract<P>& contract, const Table& table, BindContext& context) {
  auto params = std::make_shared<P>();
  const size_t before = context.problems.size();
  contract.erased().bind(params.get(), table, context);
  if (context.problems.size() == before) {
    const auto changed = [&](std::string_view key) {
      P defaults;
      Problems ignored;  // required keys are missing
      BindContext without{context.known, ignored, context.owner, context.preset};
      without.preset.uses = nullptr;
      contract.erased().bind(&defaults, Table{}, without);
      const Param* param = contract.erased().find(key);
      return param != nullptr && param->text(params.get()) != param->text(&defaults);
    };
    Findings findings(table, context.problems, changed);
    contract.run_checks(*params, findings);
  }
  return params;
}

}  // namespace detail

template <class T>
void Registry::add() {
  using P = detail::ParamsOf<T>;
  auto contract = std::make_shared<Contract<P>>();
  T::describe(*contract);
  NodeType type{.kind = detail::node_kind<T>(), .info = contract->info(), .params = contract->erased()};
  type.bind = [contract](const Table& table, BindContext& context) -> std::shared_ptr<const void> {
    return detail::bind_params(*contract, table, context);
  };
  type.needs = [contract](const void* params) { return contract->needs_of(*static_cast<const P*>(params)); };
  type.make = [](const void* params, NodeResources& resources) -> std::unique_ptr<NodeBase> {
    if constexpr (std::is_constructible_v<T, const P&, NodeResources&>) {
      return std::make_unique<T>(*static_cast<const P*>(params), resources);
    } else {
      return std::make_unique<T>(*static_cast<const P*>(params));
    }
  };
  if (contract->has_data()) {
    type.look_at_data = [contract](const void* params, DataLook& look) {
      contract->look_at_data(*static_cast<const P*>(params), look);
    };
  }
  insert(std::move(type));
}

template <class Base, class T>
void Registry::add_component() {
  using P = detail::ParamsOf<T>;
  auto contract = std::make_shared<Contract<P>>();
  T::describe(*contract);
  const ContractInfo info = contract->info();
  ComponentType type{.kind = Base::kComponent,
                     .type = info.type,
                     .summary = info.summary,
                     .metrics = info.metrics,
                     .params = contract->erased()};
  type.make = [contract](const Table& table, BindContext& context) {
    const auto params = detail::bind_params(*contract, table, context);
    NodeNeeds needs = contract->needs_of(*params);
    return MadeComponent{.object = std::static_pointer_cast<const Base>(std::make_shared<const T>(*params)),
                         .parts = contract->erased().texts(params.get()),
                         .metrics = std::move(needs.metrics),
                         .schedules = std::move(needs.schedules)};
  };
  insert(std::move(type));
}

}  // namespace sluice::engine
