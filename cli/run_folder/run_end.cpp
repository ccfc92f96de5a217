#include "cli/run_folder/run_end.h"

#include "base/error.h"
#include "base/files/file.h"
#include "engine/contract/run_folder.h"

namespace sluice::cli {

std::optional<engine::RunStatus> status_at_end(const std::filesystem::path& run_folder) {
  const std::filesystem::path file = run_folder / engine::kStatusFile;
  try {
    engine::RunStatus status = engine::parse_status(read_file(file), file.string());
    return status.state == "done" ? std::optional(std::move(status)) : std::nullopt;
  } catch (const UserError&) {
    return std::nullopt;
  }
}

}  // namespace sluice::cli
