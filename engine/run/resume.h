#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "engine/checkpoint/checkpoint_writer.h"
#include "engine/checkpoint/manifest.h"
#include "engine/contract/run_folder.h"
#include "engine/observe/stop_rule.h"
#include "engine/schedule/state/workload.h"

namespace sluice::engine {

// How a run goes on from a checkpoint, in this order.

/// Throws UserError with every key whose value has changed in a way that changes results, unless `accept`; and where the policy
/// lag has become larger than the versions that were saved.
void refuse_changes(const Manifest& manifest, const Plan& plan, bool accept);

/// Of the files that grow with the run, by the manifest, those that this plan knows: the run's own and its nodes'. Throws
/// UserError naming one that it does not know; with `accept` that one is told to `warn` and left as it is.
std::map<std::string, int64_t> known_growing_files(const Manifest& manifest, const Plan& plan, bool accept,
                                                   const std::function<void(const std::string&)>& warn);

/// Brings the files of a run folder back to where they were when `checkpoint` was saved: those that grow are cut to the lengths
/// in `growing`, event files of later parts are removed, later checkpoints in `checkpoints` get the name `N.passed-over`. A crash
/// in it leaves a folder in which it can be done again. Files that are gone or too short are told to `warn`; they are begun anew,
/// or go on where they end. Throws UserError.
struct Rewind {
  RunFolder folder;
  std::filesystem::path checkpoints;
  std::filesystem::path checkpoint;
  int64_t iterations = 0;  // that are complete there
  std::map<std::string, int64_t> growing;
};
void rewind_folder(const Rewind& rewind, const std::function<void(const std::string&)>& warn);

/// Shows the rule what the iterations before `iterations` have in that file of metrics. What cannot be read has had no value.
void show_past(StopRule& rule, const Plan& plan, const std::filesystem::path& file, int64_t iterations);

/// Where a run may write: into its folder, or, of another rank than 0, its parts of checkpoints.
std::vector<std::filesystem::path> writable_folders(const Plan& plan, const std::filesystem::path& run_folder,
                                                    bool writes_folder);

/// Those that are trained, here or on other ranks, as far as this rank has them.
SavedModels trained_models(const Plan& plan, const Workload::Models& models);

/// Gives them what they had.
void restore_models(const SavedModels& models, const std::filesystem::path& checkpoint, const Manifest& manifest);

/// What a node cannot take over, such as a place in data that are other data now. Throws UserError, or only tells.
using OnUnusableState = std::function<void(const Problems&)>;

/// Gives models and nodes what they had. A node that the checkpoint does not know begins afresh, and so does one that cannot take
/// over its state, unless `on_unusable`, which gets all of them, throws. Throws UserError naming file and tensor.
void restore(const Workload& workload, const SavedModels& models, const Plan& plan, const std::filesystem::path& checkpoint,
             const Manifest& manifest, const OnUnusableState& on_unusable);

}  // namespace sluice::engine
