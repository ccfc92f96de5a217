#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/problem.h"
#include "engine/contract/spec/spec.h"

namespace sluice::dsl {

/// A source of keys, as written. The last layer wins.
struct Layer {
  engine::Table root;
  bool is_override = false;  // from --set: changes nodes and models, creates none
  bool removes = false;      // the one key that it has, whose value is nothing
};

/// The top-level keys of a pipeline file that are tables, in the order in which they are written out.
const std::vector<std::string>& table_names();

/// A top-level key that is no table.
struct PlainKey {
  std::string name;
  std::string doc;
};

/// Where plugins and the file that is extended are named.
const PlainKey& plugins_key();
const PlainKey& extends_key();

/// A pipeline file, or builtin:NAME, and all it extends, the base first. Adds problems for what cannot be read, is not TOML, or
/// extends itself, and for unknown top-level keys; `complete` is false when a file is missing from the layers because of that.
struct Files {
  std::vector<Layer> layers;
  bool complete = true;
};
Files read_layers(const std::filesystem::path& file, Problems& problems);
Files parse_layers(std::string text, std::string name, const std::string& base_folder, Problems& problems);

/// "a.b.c=value" as a layer.
std::optional<Layer> parse_override(const std::string& argument, Problems& problems);

/// All layers as one tree. Tables merge key by key and keep the place where they were written first; everything else replaces,
/// but no table of a pipeline: where something else stands in its place, it stays as it was, and what needs it finds it.
struct Merged {
  engine::Table root;
  std::vector<engine::Name> removed;  // as PipelineSpec has it
};
Merged merge_layers(std::vector<Layer> layers, Problems& problems);

/// Adds a problem for each top-level key that no pipeline has.
void check_top_level(const engine::Table& root, Problems& problems);

}  // namespace sluice::dsl
