#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace sluice::engine {

enum class ParamKind {
  kBoolean,
  kInteger,
  kReal,
  kScheduled,
  kString,
  kChoice,
  kPath,
  kPaths,
  kReals,
  kStrings,
  kTable,
  kTables,
  kComponent
};

/// What people are told about a parameter: `describe`, docs/nodes.md and error texts are made of it.
struct ParamInfo {
  std::string name;
  ParamKind kind = ParamKind::kString;
  bool required = false;
  std::string default_text;       // as TOML; empty: unset by default
  std::optional<double> minimum;  // numbers
  std::optional<double> maximum;
  bool minimum_excluded = false;
  std::string unit;
  bool or_auto = false;     // kInteger: also "auto"
  bool must_exist = false;  // kPath, kPaths: something is there; a pattern of kPaths (*, ?, [) is left to the node
  bool harmless = false;    // a run that goes on from a checkpoint gives the same results with another value
  // kPath: what a path means that names no file, such as a model of a cache: from the text and the path. Throws UserError.
  std::function<std::filesystem::path(const std::string& text, const std::filesystem::path& path)> find;
  std::string doc;
  std::vector<std::string> choices;  // kChoice; kStrings: of each element, empty: any text
  std::string component;             // kComponent: the kind, such as "objective"
  std::vector<ParamInfo> children;   // kTable, kTables: of each
  std::string metric;                // kScheduled: what the engine records of each iteration where it changes; empty: nothing
};

/// "an integer from 1", "a number above 0 up to 1", "one of \"none\", \"iteration\"".
std::string expectation(const ParamInfo& info);

/// A value that it might have, as TOML.
std::string example_text(const ParamInfo& info);

}  // namespace sluice::engine
