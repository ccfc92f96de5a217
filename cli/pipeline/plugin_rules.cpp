#include "cli/pipeline/plugin_rules.h"

#include <algorithm>

#include "base/files/path_kind.h"
#include "base/text/strings.h"

namespace sluice::cli {
namespace fs = std::filesystem;
namespace {

bool is_in_environment(const fs::path& plugin, std::string_view environment) {
  const auto covers = [&](const std::string& entry) {
    return !entry.empty() && (is_same_file(plugin, entry) || lies_in(plugin, entry));
  };
  return std::ranges::any_of(split(environment, ':'), covers);
}

bool is_plainly_relative(const fs::path& written) {
  return written.is_relative() && std::ranges::none_of(written, [](const fs::path& part) { return part == ".."; });
}

}  // namespace

bool lies_in(const fs::path& path, const fs::path& folder) {
  const auto inner = real_path(path), outer = real_path(folder.empty() ? fs::path(".") : folder);
  return inner && outer && std::ranges::mismatch(*outer, *inner).in1 == outer->end();
}

PluginPlace place_of(const NamedPlugin& plugin, const PluginArguments& said, std::string_view environment) {
  const auto is_it = [&](const std::string& file) { return is_same_file(plugin.path, file); };
  if (said.all || std::ranges::any_of(said.files, is_it) || is_in_environment(plugin.path, environment))
    return PluginPlace::kSaid;
  if (!is_plainly_relative(plugin.text)) return PluginPlace::kElsewhere;
  if (name_kind(plugin.path) == PathKind::kNothing) return PluginPlace::kBeside;  // nothing is there that could be loaded
  return lies_in(plugin.path, plugin.folder) ? PluginPlace::kBeside : PluginPlace::kElsewhere;
}

}  // namespace sluice::cli
