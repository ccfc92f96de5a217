#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/contract/spec/spec.h"

namespace sluice::engine {

/// A value for a key that a pipeline does not write.
struct PresetValue {
  std::string of;  // whose key: node type "gae", "objective:ppo_clip" or every "objective:*", "model", table "model.optimizer"
  std::string key;
  Value value;
  std::string source;  // where the value comes from, for people
};

/// A named family of conventions, `preset = "verl"` in [pipeline]: values for keys of node types, components and models, taken
/// wherever the file writes none. They stand in for the defaults: a contract's check does not count them as written.
///
///   Preset preset("verl", "the conventions of verl");
///   preset.set("gae", "whiten", "iteration", "core_algos.py, masked_whiten");
///   registry.add_preset(std::move(preset));
struct Preset {
  Preset(std::string name, std::string summary);

  Preset& set(std::string of, std::string key, decltype(Value::data) data, std::string source);
  const PresetValue* find(std::string_view of, std::string_view key) const;

  std::string name;
  std::string summary;
  std::string origin;  // "builtin" or the plugin that brought it
  std::vector<PresetValue> values;

 private:
  SourceSpan where_;  // what problems with its values point at
};

/// A key for which a preset has a value.
struct PresetUse {
  std::string inside;  // the key of the component or table that has it; empty: the node or model itself
  std::string key;
  bool given = false;  // false: the file writes the key
};

/// The preset while one table is bound.
struct PresetScope {
  const Preset* preset = nullptr;
  std::string of;  // what the preset calls the table
  std::string inside;
  std::vector<PresetUse>* uses = nullptr;  // what was bound is noted there

  /// The scope of a component or table below `key`, which the preset calls `of`.
  PresetScope within(const std::string& key, std::string of) const;

  /// The preset's value of `key`, or null; notes whether it is `given`.
  const Value* value_of(const std::string& key, bool given) const;
};

/// Its values with their sources, for the terminal.
std::string describe_text(const Preset& preset);

}  // namespace sluice::engine
