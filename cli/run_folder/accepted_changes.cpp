#include "cli/run_folder/accepted_changes.h"

#include <algorithm>
#include <set>
#include <string>

#include "base/files/confined_file_system.h"
#include "cli/run_folder/noted_value.h"
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

}  // namespace

bool were_accepted(const fs::path& run_folder, const engine::Manifest& saved, const engine::Plan& plan) {
  // What cannot be read was not accepted.
  const Changes now = changes_of_results(saved, plan), noted = noted_value<Changes>(run_folder, engine::kAcceptedChangesFile);
  return !now.empty() && std::ranges::includes(noted, now);
}

void note_accepted(const fs::path& run_folder, const engine::Manifest& saved, const engine::Plan& plan, bool accepted) {
  const Changes changes = accepted ? changes_of_results(saved, plan) : Changes();
  if (changes.empty())
    ConfinedFileSystem({run_folder}).remove_file(run_folder / engine::kAcceptedChangesFile);
  else
    note_value(run_folder, engine::kAcceptedChangesFile, changes);
}

}  // namespace sluice::cli
