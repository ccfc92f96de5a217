#include "cli/run_folder/file_of_run.h"

#include <algorithm>

#include "base/files/inner_path.h"
#include "base/files/path_kind.h"

namespace sluice::cli {
namespace fs = std::filesystem;

std::optional<fs::path> file_of_run(const fs::path& run_folder, const std::string& name) {
  if (!fault_of_inner_path(name).empty() || !is_file(run_folder / name)) return std::nullopt;
  const auto folder = real_path(run_folder), file = real_path(run_folder / name);
  if (!folder || !file) return std::nullopt;
  const bool is_inside = std::mismatch(folder->begin(), folder->end(), file->begin(), file->end()).first == folder->end();
  return is_inside ? file : std::nullopt;
}

}  // namespace sluice::cli
