#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/problem.h"
#include "engine/contract/spec/spec.h"

namespace sluice::dsl {

/// A pipeline as written, and what is wrong with its shape: TOML syntax, unknown tables, wrong kinds of type, inputs, on, extends
/// and plugins, nodes without a type, bad names, overrides that meet nothing. What a node type makes of its keys is checked by
/// the engine. With errors among the problems the spec holds what could be understood; do not run it.
struct LoadResult {
  engine::PipelineSpec spec;
  Problems problems;
};

/// Reads a pipeline file, the files it extends, and the overrides. Never throws for what a user wrote. Every key and value knows
/// the file, line and column it was written at; relative paths in a value start at the folder of its file (Value::base).
///
///   extends = "ppo.toml"      # relative to the file that says so; any depth, no cycles; "builtin:ppo": one of the program's own
///
///   [nodes.advantages]
///   whiten = "none"           # tables merge key by key, everything else replaces; order of the nodes is that of ppo.toml
///
///   [nodes]
///   values = false            # removes a node that was inherited; [models] likewise
///
/// Keys of a node whose `type` changes stay: to give a node other keys too, remove it and add one with another name.
///
/// An override is "key=value", as in --set nodes.generate.max_new_tokens=64. The value is TOML, or else text (type=gae needs no
/// quotes; a value that begins with a quote, [ or { must be TOML). Overrides change nodes and models that exist; false removes
/// them.
LoadResult load_pipeline(const std::filesystem::path& file, const std::vector<std::string>& overrides);

/// The same for a text. `name` is what problems call it, `base_folder` is where its `extends` and relative paths start.
LoadResult parse_pipeline(std::string text, std::string name, std::string base_folder, const std::vector<std::string>& overrides);

}  // namespace sluice::dsl
