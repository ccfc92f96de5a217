#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "dsl/toml_source.h"
#include "engine/contract/registry.h"
#include "nodes/builtin.h"

/// Objectives as a pipeline gets them: by name, from the registry, with keys in TOML. So tests meet every one that there is.
namespace sluice::nodes::testing {

inline const engine::Registry& builtin_registry() {
  static const auto registry = [] {
    auto made = std::make_unique<engine::Registry>();
    register_builtin(*made);
    return made;
  }();
  return *registry;
}

/// Of one kind, such as Objective.
template <class Base>
std::vector<const engine::ComponentType*> registered() {
  std::vector<const engine::ComponentType*> types;
  for (const auto& [name, type] : builtin_registry().components()) {
    if (name.first == Base::kComponent) types.push_back(&type);
  }
  return types;
}

/// What is made of `keys`, a line each, and what is reported of them.
template <class Base>
std::shared_ptr<const Base> bound_objective(const std::string& name, const std::string& keys, Problems& problems) {
  const engine::ComponentType* type = builtin_registry().find_component(Base::kComponent, name);
  if (type == nullptr) return ADD_FAILURE() << "no objective " << name, nullptr;
  const auto table = dsl::parse_toml(keys, std::make_shared<SourceText>(SourceText{"keys", keys}), "", problems);
  if (!table) return nullptr;
  engine::BindContext context{builtin_registry(), problems, name};
  return std::static_pointer_cast<const Base>(type->make(*table, context).object);
}

/// The same; null, and a failure of the test, where something is reported.
template <class Base>
std::shared_ptr<const Base> made_objective(const std::string& name, const std::string& keys) {
  Problems problems;
  auto object = bound_objective<Base>(name, keys, problems);
  if (!problems.empty()) return ADD_FAILURE() << name << " with\n" << keys << render(problems), nullptr;
  return object;
}

}  // namespace sluice::nodes::testing
