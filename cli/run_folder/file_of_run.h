#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace sluice::cli {

/// A file of a run folder that somebody else may have laid out. Nothing: there is no regular file of that name, or it lies
/// elsewhere, by its name or by a link: a report is shown to others, and must not have what only its maker may read.
std::optional<std::filesystem::path> file_of_run(const std::filesystem::path& run_folder, const std::string& name);

}  // namespace sluice::cli
