#include "cli/report_files.h"

#include <algorithm>

#include "base/inner_path.h"
#include "base/path_kind.h"

namespace sluice::cli {
namespace fs = std::filesystem;

std::optional<fs::path> file_of_run(const fs::path& run_folder, const std::string& name) {
  if (!fault_of_inner_path(name).empty() || !is_file(run_folder / name)) return std::nullopt;
  const auto folder = real_path(run_folder), file = real_path(run_folder / name);
  if (!folder || !file) return std::nullopt;
  const bool is_inside = std::mismatch(folder->begin(), folder->end(), file->begin(), file->end()).first == folder->end();
  return is_inside ? file : std::nullopt;
}

std::vector<std::string_view> whole_lines(std::string_view text) {
  std::vector<std::string_view> lines;
  for (size_t end = text.find('\n'); end != std::string_view::npos; end = text.find('\n')) {
    if (end > 0) lines.push_back(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
  return lines;
}

}  // namespace sluice::cli
