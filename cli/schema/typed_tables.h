#pragma once

#include <string>
#include <vector>

#include "base/json/json.h"
#include "engine/contract/registry.h"

namespace sluice::cli {

/// What a table may hold whose `type` is this one.
struct TypedVariant {
  std::string type;
  std::string summary;
  std::string preset_of;  // what presets call it
  std::vector<engine::ParamInfo> params;
  Json language_keys = Json::object();         // schemas of keys that the language gives it beside those
  std::vector<std::string> language_required;  // of these
};

/// A table whose `type` decides which keys it has: a node, or a component such as an objective.
struct TypedTable {
  std::string kind;  // "node", "objective", "environment"
  std::vector<TypedVariant> variants;

  std::vector<std::string> types() const;

  /// Every key that some variant has, and "type".
  std::vector<std::string> keys() const;
};

/// [nodes.NAME] of all node types that the registry has.
TypedTable node_table(const engine::Registry& registry);

/// One table a kind of components, such as objectives.
std::vector<TypedTable> component_tables(const engine::Registry& registry);

/// What some type of a table takes under a key.
struct KeyValue {
  Json reference;                            // to its schema
  const engine::ParamInfo* param = nullptr;  // null: the language gives the key
};

/// What the types take under `key`, without repeats. Nothing for "type", which decides. Valid as long as `table`.
std::vector<KeyValue> values_of_key(const TypedTable& table, const std::string& key);

/// The definitions of a typed table: one of each variant, "node.gae", and under the name of its kind the table itself. Keys that
/// only some types have are refused to others where `type` is written; without it every key is taken, since a file that is
/// extended may have the type. An editor is offered all types, and all keys.
void define_typed_table(const TypedTable& table, Json& definitions);

}  // namespace sluice::cli
