#include "cli/accepted_changes.h"

#include <algorithm>
#include <set>
#include <string>

#include "base/confined_file_system.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "cli/file_of_run.h"
#include "engine/contract/run_folder.h"
#include "engine/plan/pipeline_changes.h"

namespace sluice::cli {
namespace fs = std::filesystem;
namespace {

using Changes = std::set<std::string>;

Changes changes_of_results(const engine::Manifest& saved, const engine::Plan& plan) {
  Changes changes;
  for (const engine::PipelineChange& change : engine::pipeline_changes(saved.pipeline, engine::keys_to_compare(plan)))
    if (!change.harmless) changes.insert(engine::change_text(change));
  return changes;
}

// What cannot be read was not accepted.
Changes noted_in(const fs::path& run_folder) {
  const auto file = file_of_run(run_folder, engine::kAcceptedChangesFile);
  if (!file) return {};
  try {
    return read_json(*file).get<Changes>();
  } catch (const UserError&) {
    return {};
  } catch (const Json::exception&) {
    return {};
  }
}

}  // namespace

bool were_accepted(const fs::path& run_folder, const engine::Manifest& saved, const engine::Plan& plan) {
  const Changes now = changes_of_results(saved, plan), noted = noted_in(run_folder);
  return !now.empty() && std::ranges::includes(noted, now);
}

void note_accepted(const fs::path& run_folder, const engine::Manifest& saved, const engine::Plan& plan, bool accepted) {
  ConfinedFileSystem files({run_folder});
  const fs::path file = run_folder / engine::kAcceptedChangesFile;
  const Changes changes = accepted ? changes_of_results(saved, plan) : Changes();
  if (changes.empty())
    files.remove_file(file);
  else
    write_file_atomically(file, Json(changes).dump(2) + "\n", files);
}

}  // namespace sluice::cli
