#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::cli {

/// A file of a run folder that somebody else may have laid out. Nothing: there is no regular file of that name, or it lies
/// elsewhere, by its name or by a link: a report is shown to others, and must not have what only its maker may read.
std::optional<std::filesystem::path> file_of_run(const std::filesystem::path& run_folder, const std::string& name);

/// The lines of a file that a run may be writing: without the last one where it does not end.
std::vector<std::string_view> whole_lines(std::string_view text);

}  // namespace sluice::cli
