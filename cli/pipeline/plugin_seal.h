#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace sluice::cli {

// A run goes on with the plugins that it began with, and `resume` takes them from the run folder. But a run folder may come from
// a stranger. So a run leaves `plugins.json`, which says of each plugin what only this machine knows of the file: its number and
// the nanosecond of its last change. A folder that was made elsewhere cannot tell these, and a library that belongs to another
// user is never taken. Not thread-safe; files go through base/files/file.h.

/// Notes the plugins that a run has loaded. Without plugins it removes what was noted. Throws UserError when it cannot be
/// written.
void seal_plugins(const std::filesystem::path& run_folder, const std::vector<std::string>& plugins);

/// Whether `plugin` is the file that a run in this folder has loaded, unchanged since then, of this user or of root. Never
/// throws.
bool is_sealed(const std::filesystem::path& run_folder, const std::filesystem::path& plugin);

}  // namespace sluice::cli
