#include <cstdio>

#include "base/error.h"
#include "base/strings.h"
#include "cli/commands.h"
#include "cli/exit_codes.h"
#include "cli/load.h"
#include "engine/node_reference.h"

namespace sluice::cli {
namespace {

constexpr size_t kNameWidth = 26;

void print_line(std::string name, const std::string& summary, const std::string& origin) {
  name.resize(std::max(name.size() + 1, kNameWidth), ' ');
  std::printf("%s%s%s\n", name.c_str(), summary.c_str(), origin == "builtin" ? "" : ("  (" + origin + ")").c_str());
}

// "objective:ppo_clip" names a component, "gae" a node type.
std::string full_name(const engine::ComponentType& component) { return component.kind + ":" + component.type; }

}  // namespace

int list_nodes(const std::vector<std::string>& plugins, bool markdown) {
  const auto registry = make_registry(plugins);
  if (markdown) {
    std::fputs(engine::reference_markdown(*registry).c_str(), stdout);
    return kDone;
  }
  for (const auto& [name, type] : registry->nodes()) print_line(name, type.info.summary, type.origin);
  std::printf("\n");
  for (const auto& [key, component] : registry->components()) print_line(full_name(component), component.summary, component.origin);
  std::printf("\n");
  for (const auto& [name, preset] : registry->presets()) print_line("preset:" + name, preset.summary, preset.origin);
  return kDone;
}

int describe_type(const std::string& name, const std::vector<std::string>& plugins) {
  const auto registry = make_registry(plugins);
  if (const engine::NodeType* node = registry->find(name)) {
    std::fputs(engine::describe_text(*node, *registry).c_str(), stdout);
    return kDone;
  }
  std::vector<std::string> known;
  for (const auto& [preset_name, preset] : registry->presets()) {
    known.push_back("preset:" + preset_name);
    if (known.back() != name) continue;
    std::fputs(engine::describe_text(preset).c_str(), stdout);
    return kDone;
  }
  for (const auto& [key, component] : registry->components()) {
    // `try` calls every kind of objective objective:NAME.
    if (full_name(component) == name || component.type == name || "objective:" + component.type == name) {
      std::fputs(engine::describe_text(component).c_str(), stdout);
      return kDone;
    }
    known.push_back(full_name(component));
  }
  for (const auto& [type, node] : registry->nodes()) known.push_back(type);
  const std::string near = did_you_mean(name, known);
  throw UserError("there is no node type, objective or preset " + sluice::quoted(name),
                  near.empty() ? "rlhf-run nodes lists all" : "did you mean " + near + "?");
}

}  // namespace sluice::cli
