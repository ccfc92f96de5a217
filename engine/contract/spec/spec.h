#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/problem.h"

namespace sluice::engine {

struct Entry;
struct Value;

/// Keys in the order they were written. Keys are unique.
struct Table {
  std::vector<Entry> entries;
  SourceSpan where;  // the header of the table, or its opening brace

  const Entry* find(std::string_view key) const;
  bool empty() const { return entries.empty(); }
};

using Array = std::vector<Value>;

/// One value of a pipeline file with the place it was written at. `base` is the folder that a relative path in it is relative to.
struct Value {
  std::variant<bool, int64_t, double, std::string, Array, Table> data;
  SourceSpan where;
  std::string base;
};

struct Entry {
  std::string key;
  SourceSpan key_where;
  Value value;
};

/// What a value is, as a person would say it: "a string", "an integer", ...
std::string kind_name(const Value& value);

/// The value as TOML, on one line.
std::string toml_text(const Value& value);

/// A name with the place it was written at.
struct Name {
  std::string text;
  SourceSpan where;
};

/// `[models.NAME]`: its keys are bound by the model type of the registry.
struct ModelSpec {
  Name name;
  Table params;
};

/// `[nodes.NAME]`. type, inputs and on are taken out; what is left is bound by the node type's contract.
struct NodeSpec {
  Name name;
  Name type;
  std::vector<Name> inputs;
  Name on;              // empty text: not written
  Name metrics_prefix;  // likewise
  Table params;
};

/// `[cluster.roles.NAME]`.
struct RoleSpec {
  Name name;
  Table params;
};

/// `[devices."cuda:0"]`.
struct DeviceSpec {
  Name name;
  Table params;
};

/// A pipeline as it was written, after `extends` and `--set`. Plain values; nothing is checked but the shape of the file.
struct PipelineSpec {
  SourceSpan where;  // the file
  Table pipeline;    // [pipeline]
  Table budget;      // [budget]
  Table schedule;    // [schedule]
  Table runtime;     // [runtime]
  Table checkpoint;  // [checkpoint]
  Table log;         // [log]
  Table cluster;     // [cluster], without its roles
  std::vector<RoleSpec> roles;
  std::vector<DeviceSpec> devices;
  std::vector<Name> plugins;
  std::string plugins_base;  // relative plugin paths start here
  std::vector<ModelSpec> models;
  std::vector<NodeSpec> nodes;
  std::vector<Name> removed;  // "nodes.train": what a layer takes out of those below it, and where it says so
};

}  // namespace sluice::engine
