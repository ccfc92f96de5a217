#include "engine/resume.h"

#include "base/error.h"
#include "base/file.h"
#include "base/folder.h"
#include "engine/checkpoint_folder.h"
#include "engine/event_file.h"
#include "engine/pipeline_changes.h"

namespace sluice::engine {
namespace fs = std::filesystem;
namespace {

void refuse_larger_lag(const Manifest& manifest, const Plan& plan) {
  for (const PlanModel& model : plan.models) {
    const SavedModel saved{.model = nullptr, .older_versions = model.usage.saved_versions};
    if (saved.versions(manifest.iterations).oldest >= manifest.oldest_version) continue;
    throw UserError("the run cannot go on with [schedule] policy_lag = " + std::to_string(plan.schedule.policy_lag) +
                        ": the checkpoint has no weights of '" + model.name + "' from before version " +
                        std::to_string(manifest.oldest_version),
                    "go on with the lag that it was saved with, or with a smaller one");
  }
}

void cut_growing_file(const fs::path& path, int64_t bytes, FileSystem& files,
                      const std::function<void(const std::string&)>& warn) {
  std::error_code error;
  const auto there = static_cast<int64_t>(fs::file_size(path, error));
  if (error) return warn(path.string() + " is gone; it begins anew");
  if (there < bytes)
    return warn(path.string() + " has lost its end: " + std::to_string(there) + " of " + std::to_string(bytes) +
                " bytes are left");
  if (there > bytes) cut_file(path, bytes, files);
}

void remove_later_event_files(const fs::path& run_folder, const Manifest& manifest, FileSystem& files) {
  std::vector<fs::path> later;
  for (const fs::directory_entry& entry : fs::directory_iterator(run_folder)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(kEventFilePrefix) && !manifest.growing.contains(name)) later.push_back(entry.path());
  }
  for (const fs::path& path : later) remove_tree(path, files);
}

void pass_over_later_checkpoints(const fs::path& run_folder, int64_t iterations, FileSystem& files) {
  for (const CheckpointPlace& place : list_checkpoints(run_folder)) {
    if (place.iterations <= iterations) continue;
    fs::path aside = place.folder;
    aside += ".passed-over";
    remove_tree(aside, files);
    replace_path(place.folder, aside, files);
  }
}

Problem problem_of(const std::string& node, const UserError& error) {
  Problem problem = error.problems().front();
  problem.message = "node '" + node + "' cannot go on: " + problem.message;
  return problem;
}

}  // namespace

void refuse_changes(const Manifest& manifest, const Plan& plan, bool accept) {
  refuse_larger_lag(manifest, plan);
  if (accept) return;
  Problem problem{.where = {},
                  .message = "the pipeline has changed since the checkpoint was saved, in ways that change results",
                  .caret = {},
                  .notes = {},
                  .help = "go on with the pipeline of the run folder, or go on all the same with --accept-changes"};
  for (const PipelineChange& change : pipeline_changes(manifest.pipeline, plan)) {
    if (!change.harmless) problem.notes.push_back(change_text(change));
  }
  if (!problem.notes.empty()) throw UserError(std::move(problem));
}

void rewind_folder(const fs::path& run_folder, const fs::path& checkpoint, const Manifest& manifest, FileSystem& files,
                   const std::function<void(const std::string&)>& warn) {
  for (const auto& [name, bytes] : manifest.growing) cut_growing_file(run_folder / name, bytes, files, warn);
  remove_later_event_files(run_folder, manifest, files);
  pass_over_later_checkpoints(run_folder, manifest.iterations, files);
  replace_link(fs::path("checkpoints") / checkpoint.filename(), run_folder / "checkpoint", files);
}

void restore(const Workload& workload, const SavedModels& models, const Plan& plan, const fs::path& checkpoint,
             const Manifest& manifest, const OnUnusableState& on_unusable) {
  for (const auto& [name, saved] : models) saved.model->restore(checkpoint, saved.versions(manifest.iterations));
  Problems problems;
  for (size_t i = 0; i < plan.nodes.size(); ++i) {
    const auto state = manifest.nodes.find(plan.nodes[i].name);
    if (state == manifest.nodes.end()) continue;
    try {
      workload.parts[i].node->load(StateReader(state->second));
    } catch (const UserError& error) {
      problems.push_back(problem_of(plan.nodes[i].name, error));
    }
  }
  if (!problems.empty()) on_unusable(problems);
}

}  // namespace sluice::engine
