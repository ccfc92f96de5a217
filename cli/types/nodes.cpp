#include <algorithm>
#include <cstdio>
#include <optional>

#include "base/error.h"
#include "base/text/printable.h"
#include "base/text/strings.h"
#include "cli/command/completion.h"
#include "cli/pipeline/load.h"
#include "cli/process/exit_codes.h"
#include "cli/types/commands.h"
#include "cli/types/type_names.h"
#include "engine/contract/params/foreign_names.h"
#include "engine/text/node_reference.h"

namespace sluice::cli {
namespace {

constexpr size_t kNameWidth = 26;
constexpr std::string_view kTablePrefix = "table:", kPresetPrefix = "preset:";

void print_line(std::string name, const std::string& summary, const std::string& origin) {
  name.resize(std::max(name.size() + 1, kNameWidth), ' ');
  std::printf("%s%s%s\n", name.c_str(), summary.c_str(), origin == "builtin" ? "" : ("  (" + printable(origin) + ")").c_str());
}

void print_list(const engine::Registry& registry) {
  for (const auto& [name, type] : registry.nodes()) print_line(name, type.info.summary, type.origin);
  std::printf("\n");
  for (const auto& [key, component] : registry.components())
    print_line(full_name(component), component.summary, component.origin);
  std::printf("\n");
  for (const auto& [name, preset] : registry.presets()) print_line("preset:" + name, preset.summary, preset.origin);
  std::printf("\n");
  for (const engine::DescribedTable& table : engine::described_tables(registry))
    print_line("table:" + table.name, "the keys of [" + table.heading + "]", "builtin");
}

std::string without(std::string_view prefix, const std::string& name) {
  return name.starts_with(prefix) ? name.substr(prefix.size()) : name;
}

// A node type goes before a component and a table of the same name.
std::optional<std::string> description(const engine::Registry& registry, const std::string& name) {
  if (const engine::NodeType* node = registry.find(name)) return engine::describe_text(*node, registry);
  for (const auto& [key, component] : registry.components()) {
    // `try` calls every kind of objective objective:NAME.
    if (full_name(component) == name || component.type == name || "objective:" + component.type == name)
      return engine::describe_text(component);
  }
  if (name.starts_with(kPresetPrefix)) {
    const auto preset = registry.presets().find(without(kPresetPrefix, name));
    if (preset != registry.presets().end()) return engine::describe_text(preset->second);
  }
  // [budget] and models.actor.optimizer are how a pipeline has them.
  const std::string plain =
      name.starts_with('[') && name.ends_with(']') ? name.substr(1, name.size() - 2) : without(kTablePrefix, name);
  for (const engine::DescribedTable& table : engine::described_tables(registry)) {
    if (table.name == plain || table.heading == plain) return engine::describe_text(table);
  }
  return std::nullopt;
}

// Of a name that another system has: what it is called here. Empty: nobody calls anything so.
std::string foreign_text(const std::string& name) {
  for (const char* kind : {"node", "objective", "preference_objective", "value_objective"}) {
    if (std::string text = engine::foreign_type_text(name, kind); !text.empty()) return text;
  }
  return engine::foreign_key_text(name, engine::foreign_keys(name));
}

// The prefix of a preset need not be typed to be meant.
std::string nearest_name(const engine::Registry& registry, const std::string& wrong) {
  const std::vector<std::string> known = described_names(registry);
  for (const auto& [name, preset] : registry.presets()) {
    if (name == wrong) return "preset:" + name;
  }
  return did_you_mean(wrong, known);
}

}  // namespace

int list_nodes(const std::vector<std::string>& plugins, const std::string& format) {
  const auto registry = make_registry(plugins);
  if (format == "markdown") {
    std::fputs(engine::reference_markdown(*registry).c_str(), stdout);
  } else if (format == "json") {
    std::fputs(engine::reference_json(*registry).c_str(), stdout);
  } else {
    print_list(*registry);
  }
  return kDone;
}

int describe_type(const std::string& name, const std::vector<std::string>& plugins) {
  const auto registry = make_registry(plugins);
  if (const auto text = description(*registry, name)) {
    std::fputs(text->c_str(), stdout);
    return kDone;
  }
  const std::string wrong = "there is no node type, objective, preset or table " + sluice::quoted(name);
  if (const std::string foreign = foreign_text(name); !foreign.empty()) throw UserError(wrong, foreign);
  const std::string near = nearest_name(*registry, name);
  throw UserError(wrong,
                  near.empty() ? "rlhf-run nodes lists all; --plugin FILE adds those of a plugin" : "did you mean " + near + "?");
}

int print_completion(const Command& program, const std::string& shell) {
  const auto registry = make_registry();
  const TypeNames types{.described = described_names(*registry), .tried = tried_names(*registry)};
  const std::string script = shell == "bash"  ? bash_completion(program, types)
                             : shell == "zsh" ? zsh_completion(program, types)
                                              : fish_completion(program, types);
  std::fputs(script.c_str(), stdout);
  return kDone;
}

}  // namespace sluice::cli
