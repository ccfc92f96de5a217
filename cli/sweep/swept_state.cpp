#include "cli/sweep/swept_state.h"

#include "base/error.h"
#include "base/files/file.h"
#include "cli/run_folder/file_of_run.h"
#include "engine/contract/run_folder.h"
#include "engine/observe/status.h"

namespace sluice::cli {

SweptState state_of_run(const std::filesystem::path& folder) {
  const auto file = file_of_run(folder, engine::kStatusFile);
  if (!file) return {};
  try {
    const engine::RunStatus status = engine::parse_status(read_file(*file), file->string());
    return {.state = status.state, .iterations = status.iterations, .iterations_done = status.iterations_done};
  } catch (const UserError&) {
    return {};
  }
}

}  // namespace sluice::cli
