#pragma once

#include <string>
#include <vector>

#include "base/json/json.h"
#include "cli/schema/typed_tables.h"
#include "engine/contract/registry.h"

namespace sluice::cli {

/// What a schema asks of some pipeline files beside what it asks of all.
enum class Rule {
  kComplete,  // of those that extend no other file: required keys, tables where tables stand
  kKnown,     // of those that name no plugins: types, components and presets that the registry has
};

/// The rules of one kind as schemas that go beside those of the tables. Made for one schema.
class SchemaRules {
 public:
  SchemaRules(const engine::Registry& registry, Rule rule) : registry_(registry), rule_(rule) {}

  /// "complete" or "known": definitions of rules are called "complete.objective".
  std::string name() const { return rule_ == Rule::kComplete ? "complete" : "known"; }

  /// Of a table with these parameters, which presets call `of`. Empty: none.
  Json of_table(const std::vector<engine::ParamInfo>& params, const std::string& of) const;

  /// Of [nodes.NAME].
  Json of_node(const TypedTable& table) const;

  /// Of a component, which is a name or a table.
  Json of_component(const TypedTable& table) const;

 private:
  bool is_needed(const engine::ParamInfo& info, const std::string& of) const;
  Json of_value(const engine::ParamInfo& info, const std::string& of) const;
  Json of_variant(const TypedVariant& variant) const;
  Json of_some_type(const TypedTable& table) const;
  Json of_typed(const TypedTable& table) const;

  const engine::Registry& registry_;
  Rule rule_;
};

}  // namespace sluice::cli
