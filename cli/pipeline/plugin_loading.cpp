#include "cli/pipeline/plugin_loading.h"

#include <algorithm>
#include <cstdlib>
#include <span>

#include "base/error.h"
#include "base/files/path_kind.h"
#include "base/text/shell_word.h"
#include "base/text/strings.h"
#include "cli/pipeline/plugin_rules.h"
#include "cli/pipeline/plugin_seal.h"
#include "engine/contract/plugin/plugin.h"

namespace sluice::cli {
namespace fs = std::filesystem;
namespace {

constexpr char kWhatAPluginMay[] = "a plugin is a program: once it is loaded it may do all that you may";

fs::path path_of(const engine::Name& plugin, const engine::PipelineSpec& spec) {
  return (fs::path(spec.plugins_base) / plugin.text).lexically_normal();
}

// `--set plugins=[...]` replaces what the files say.
bool is_set(const std::vector<std::string>& sets) {
  return std::ranges::any_of(sets, [](const std::string& set) { return trim(set.substr(0, set.find('='))) == "plugins"; });
}

std::string environment() {
  const char* value = std::getenv("SLUICE_PLUGINS");
  return value == nullptr ? "" : value;
}

void add_files(const std::vector<std::string>& files, engine::PipelineSpec& spec) {
  for (const std::string& file : files) {
    const auto is_it = [&](const engine::Name& plugin) { return is_same_file(path_of(plugin, spec), file); };
    if (std::ranges::none_of(spec.plugins, is_it)) spec.plugins.push_back({absolute_path(file).lexically_normal().string(), {}});
  }
}

// In the same words as load_plugin() has.
Problem missing(const PluginContext& context, const engine::Name& plugin, const fs::path& path) {
  const bool goes_on = context.use == PluginUse::kGoOn, in_file = plugin.where.known() && !plugin.where.source->typed;
  return {.kind = "plugin-missing",
          .where = plugin.where,
          .message = "there is no plugin " + path.string(),
          .caret = {},
          .notes = {},
          .help = goes_on   ? "say where it is now: --set 'plugins=[\"FILE\"]'"
                  : in_file ? "build it, or correct the path, which starts at the folder of the file that it is written in"
                            : "build it, or correct the path"};
}

Problem refusal(const PluginContext& context, const engine::Name& plugin, const fs::path& path) {
  const bool goes_on = context.use == PluginUse::kGoOn;
  const std::string what =
      goes_on ? "plugin " + path.string() + " is not, or no longer, the file that this run has loaded"
              : "plugin " + path.string() +
                    " does not lie in the folder of the pipeline file or below, and nobody named it to the program";
  const std::string help = goes_on ? "if you trust it: rlhf-run resume " + shell_word(context.run_folder.string()) +
                                         " --plugin " + shell_word(path.string())
                                   : "if you trust it, add to the command: --plugin " + shell_word(path.string()) +
                                         ", or set SLUICE_PLUGINS to its folder";
  return {.kind = "plugin-not-allowed",
          .where = plugin.where,
          .message = what,
          .caret = {},
          .notes = {kWhatAPluginMay},
          .help = help};
}

// Under whatever names: the second time its types would be taken by itself.
bool is_named_before(const engine::Name& plugin, const engine::PipelineSpec& spec) {
  const auto before = std::span(spec.plugins).first(static_cast<size_t>(&plugin - spec.plugins.data()));
  return std::ranges::any_of(
      before, [&](const engine::Name& other) { return is_same_file(path_of(other, spec), path_of(plugin, spec)); });
}

Problem named_twice(const engine::Name& plugin, const fs::path& path) {
  return {.kind = "written-twice",
          .where = plugin.where,
          .message = "plugin " + path.string() + " is named twice",
          .caret = {},
          .notes = {},
          .help = "once is enough"};
}

void report(const engine::Name& plugin, const UserError& error, Problems& problems) {
  for (Problem problem : error.problems()) {
    if (problem.kind.empty()) problem.kind = "plugin-missing";  // or in a folder that may not be entered
    if (!problem.where.known()) problem.where = plugin.where;
    problems.push_back(std::move(problem));
  }
}

PluginPlace place_in(const PluginContext& context, const NamedPlugin& plugin) {
  if (is_set(context.arguments.sets)) return PluginPlace::kSaid;
  const PluginPlace place = place_of(plugin, context.arguments.plugins, environment());
  if (context.use != PluginUse::kGoOn || place == PluginPlace::kSaid) return place;
  // Beside the pipeline of a run folder lies only what came with the folder.
  return is_sealed(context.run_folder, plugin.path) ? PluginPlace::kSaid : PluginPlace::kElsewhere;
}

}  // namespace

PluginOutcome load_plugins(const PluginContext& context, engine::PipelineSpec& spec, engine::Registry& registry,
                           Problems& problems) {
  add_files(context.arguments.plugins.files, spec);
  const size_t before = problems.size();
  PluginOutcome outcome;
  for (const engine::Name& plugin : spec.plugins) {
    const fs::path path = path_of(plugin, spec);
    try {
      const PluginPlace place = place_in(context, {plugin.text, path, context.arguments.file.parent_path()});
      if (name_kind(path) == PathKind::kNothing)
        problems.push_back(missing(context, plugin, path));
      else if (place == PluginPlace::kElsewhere)
        problems.push_back(refusal(context, plugin, path));
      else if (is_named_before(plugin, spec))
        problems.push_back(named_twice(plugin, path));
      else if (place == PluginPlace::kBeside && context.use == PluginUse::kLook)
        outcome.unasked.push_back(plugin);
      else
        engine::load_plugin(path, registry);
    } catch (const UserError& error) {
      report(plugin, error, problems);
    }
  }
  outcome.complete = outcome.unasked.empty() && problems.size() == before;
  return outcome;
}

Problem unchecked_warning(const std::vector<engine::Name>& unasked, std::vector<std::string> unchecked) {
  std::vector<std::string> names;
  for (const engine::Name& plugin : unasked) names.push_back(plugin.text);
  std::sort(unchecked.begin(), unchecked.end());
  unchecked.push_back(kWhatAPluginMay);
  return {.kind = kPluginNotLoaded,
          .where = unasked.front().where,
          .message = (names.size() == 1 ? "plugin " : "plugins ") + join(names, ", ") + (names.size() == 1 ? " is" : " are") +
                     " not loaded, so what it adds is not checked",
          .caret = {},
          .notes = std::move(unchecked),
          .help = "if you trust it, add --plugins to the command",
          .severity = Severity::kWarning};
}

}  // namespace sluice::cli
