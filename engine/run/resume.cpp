#include "engine/run/resume.h"

#include <algorithm>
#include <sstream>

#include "base/error.h"
#include "base/files/file.h"
#include "base/files/folder.h"
#include "base/files/path_kind.h"
#include "base/json/json.h"
#include "base/text/strings.h"
#include "engine/checkpoint/checkpoint_folder.h"
#include "engine/contract/plugin_code.h"
#include "engine/plan/pipeline_changes.h"

namespace sluice::engine {
namespace fs = std::filesystem;
namespace {

constexpr size_t kMostChanges = 20;  // that are named

void refuse_larger_lag(const Manifest& manifest, const Plan& plan) {
  for (const PlanModel& model : plan.models) {
    if (model.usage.versions.saved_with(manifest.iterations).oldest >= manifest.oldest_version) continue;
    throw UserError("the run cannot go on with [schedule] policy_lag = " + std::to_string(plan.schedule.policy_lag) +
                        ": the checkpoint has no weights of '" + model.name + "' from before version " +
                        std::to_string(manifest.oldest_version),
                    "go on with the lag that it was saved with, or with a smaller one");
  }
}

// What a torn file of lines has of its last one: the next line would be written after it.
void cut_to_whole_lines(const fs::path& path, FileSystem& files) {
  const int64_t bytes = file_bytes(path);
  const std::string end = read_end_of_file(path, kMostTextBytes);
  const size_t last = end.rfind('\n');
  const size_t torn = last == std::string::npos ? end.size() : end.size() - last - 1;
  if (torn > 0) cut_file(path, bytes - static_cast<int64_t>(torn), files);
}

// Event files are no lines, and each part of a run has one of its own.
void cut_growing_file(const fs::path& path, int64_t bytes, FileSystem& files,
                      const std::function<void(const std::string&)>& warn) {
  if (name_kind(path) == PathKind::kNothing) return warn(path.string() + " is gone; it begins anew");
  if (name_kind(path) != PathKind::kFile) throw UserError(path.string() + " is not what a run writes: an ordinary file");
  const int64_t there = file_bytes(path);
  if (there < bytes) {
    warn(path.string() + " has lost its end: " + std::to_string(there) + " of " + std::to_string(bytes) + " bytes are left");
    if (!path.filename().string().starts_with(kEventFilePrefix)) cut_to_whole_lines(path, files);
  }
  if (there > bytes) cut_file(path, bytes, files);
}

void remove_later_event_files(const Rewind& rewind) {
  for (const fs::path& entry : entries_of(rewind.folder.path)) {
    const std::string name = entry.filename().string();
    if (name.starts_with(kEventFilePrefix) && !rewind.growing.contains(name)) remove_tree(entry, *rewind.folder.files);
  }
}

void pass_over_later_checkpoints(const Rewind& rewind) {
  for (const CheckpointPlace& place : list_checkpoints(rewind.folder.path)) {
    if (place.iterations <= rewind.iterations) continue;
    const fs::path later = rewind.checkpoints / place.folder.filename();
    fs::path aside = later;
    aside += ".passed-over";
    remove_tree(aside, *rewind.folder.files);
    replace_path(later, aside, *rewind.folder.files);
  }
}

bool grows_in(const Plan& plan, const std::string& name) {
  if (name == kMetricsFile || (name.starts_with(kEventFilePrefix) && name.find('/') == std::string::npos)) return true;
  return std::ranges::any_of(plan.nodes, [&](const PlanNode& node) {
    return std::ranges::find(node.needs.files, name, &FileNeed::path) != node.needs.files.end();
  });
}

// A node's code may throw whatever it likes.
void load_state(NodeBase& node, const NodeState& state, const std::string& where, Problems& problems) {
  try {
    call_plugin("load() failed", [&] { node.load(StateReader(state)); });
  } catch (const UserError& error) {
    Problem problem = error.problems().front();
    problem.message = where + ": " + problem.message;
    problems.push_back(std::move(problem));
  } catch (const InternalError& error) {
    throw InternalError(where + ": " + error.what());
  }
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
  for (const PipelineChange& change : pipeline_changes(manifest.pipeline, keys_to_compare(plan))) {
    if (!change.harmless) problem.notes.push_back(change_text(change));
  }
  if (problem.notes.empty()) return;
  if (problem.notes.size() > kMostChanges) {  // it is another pipeline
    const auto left_out = static_cast<int64_t>(problem.notes.size() - kMostChanges);
    problem.notes.resize(kMostChanges);
    problem.notes.push_back("and " + plural(left_out, "more key"));
  }
  throw UserError(std::move(problem));
}

std::map<std::string, int64_t> known_growing_files(const Manifest& manifest, const Plan& plan, bool accept,
                                                   const std::function<void(const std::string&)>& warn) {
  std::map<std::string, int64_t> known;
  for (const auto& [name, bytes] : manifest.growing) {
    if (grows_in(plan, name)) {
      known.emplace(name, bytes);
    } else if (accept) {
      warn("no node of this pipeline writes " + name + ", to which the run appended before; it stays as it is");
    } else {
      throw UserError(
          "the checkpoint says that the run appends to " + sluice::quoted(name) + ", which no node of its pipeline does",
          "go on with --accept-changes to leave that file as it is");
    }
  }
  return known;
}

void rewind_folder(const Rewind& rewind, const std::function<void(const std::string&)>& warn) {
  for (const auto& [name, bytes] : rewind.growing) cut_growing_file(rewind.folder.path / name, bytes, *rewind.folder.files, warn);
  remove_later_event_files(rewind);
  pass_over_later_checkpoints(rewind);
  replace_link(fs::path(kCheckpointsFolder) / rewind.checkpoint.filename(), rewind.folder.path / kNewestCheckpointLink,
               *rewind.folder.files);
}

std::vector<fs::path> writable_folders(const Plan& plan, const fs::path& run_folder, bool writes_folder) {
  if (run_folder.empty()) return {};
  std::vector<fs::path> folders{writes_folder ? run_folder : run_folder / kCheckpointsFolder};
  if (plan.checkpoint.folder) folders.push_back(absolute_path(*plan.checkpoint.folder));
  return folders;
}

SavedModels trained_models(const Plan& plan, const Workload::Models& models) {
  SavedModels saved;
  for (const PlanModel& model : plan.models) {
    const auto found = models.find(model.name);
    if (model.usage.updated && found != models.end())
      saved[model.name] = {.model = found->second, .versions = model.usage.versions};
  }
  return saved;
}

void restore_models(const SavedModels& models, const fs::path& checkpoint, const Manifest& manifest) {
  for (const auto& [name, saved] : models) saved.model->restore(checkpoint, saved.versions.saved_with(manifest.iterations));
}

void restore(const Workload& workload, const SavedModels& models, const Plan& plan, const fs::path& checkpoint,
             const Manifest& manifest, const OnUnusableState& on_unusable) {
  restore_models(models, checkpoint, manifest);
  Problems problems;
  for (size_t i = 0; i < plan.nodes.size(); ++i) {
    const std::string& name = plan.nodes[i].name;
    const auto state = manifest.nodes.find(name);
    if (state == manifest.nodes.end()) continue;
    const std::string where = "node '" + name + "' cannot go on from " + checkpoint.string();
    load_state(*workload.parts[i].node, state->second, where, problems);
  }
  if (!problems.empty()) on_unusable(problems);
}

void show_past(StopRule& rule, const Plan& plan, const fs::path& file, int64_t iterations) {
  if (path_kind(file) != PathKind::kFile) return;
  std::istringstream lines(read_file(file, file_bytes(file)));
  for (std::string line; std::getline(lines, line);) {
    const auto row = json_or_discarded(line);
    if (!row.is_object() || !row.contains("iteration") || !row["iteration"].is_number()) continue;
    const auto value = row.find(rule.metric());
    const auto iteration = row["iteration"].get<int64_t>();
    if (iteration < iterations && value != row.end() && value->is_number())
      show_iteration(rule, plan, iteration, value->get<double>());
  }
}

}  // namespace sluice::engine
