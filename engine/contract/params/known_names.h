#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/contract/params/param_table.h"
#include "engine/contract/world/device_kind.h"
#include "engine/contract/world/metric_spec.h"

namespace sluice::engine {

/// What became of a table that names a component, as Component keeps it.
struct MadeComponent {
  std::shared_ptr<const void> object;
  std::vector<ParamText> parts;  // its keys, without its type
  std::vector<MetricSpec> metrics;
  std::vector<NamedSchedule> schedules;
};

/// A component type (see Component), such as the objective "ppo_clip".
struct ComponentType {
  std::string kind;
  std::string type;
  std::string summary;
  std::string origin;
  std::vector<MetricSpec> metrics;
  ParamTable params;
  std::function<MadeComponent(const Table&, BindContext&)> make;
};

/// What is said of a key that its table does not have.
struct KeyHelp {
  std::string caret;  // after the carets: the key of this table that was probably meant
  std::string help;   // else where such a key stands, or which keys there are
  std::string meant;  // that key of this table; empty: none
};

/// What a table may name that is not in it, and where its keys stand elsewhere: all that binding asks of the types of a program.
/// The registry is it. Constant while anything is bound.
class KnownNames {
 public:
  virtual ~KnownNames() = default;

  /// Null: there is none.
  virtual const ComponentType* find_component(const std::string& kind, const std::string& type) const = 0;

  /// Of a kind of components.
  virtual std::vector<std::string> component_types(const std::string& kind) const = 0;

  /// Of the kind that has this name, such as "cuda"; null: there is none.
  virtual const DeviceKind* find_device_kind(const std::string& name) const = 0;

  /// What may stand for a device: "cuda:N".
  virtual std::vector<std::string> device_names() const = 0;

  /// `known`: the keys of the table. `owner`: what the table is called.
  virtual KeyHelp help_for_unknown_key(const std::string& key, const std::vector<std::string>& known,
                                       const std::string& owner) const = 0;
};

}  // namespace sluice::engine
