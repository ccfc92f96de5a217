#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/file_system.h"
#include "engine/checkpoint/manifest.h"
#include "engine/contract/model.h"

namespace sluice::engine {

/// The models that a run trains, by name, with what a checkpoint must know of them.
struct SavedModel {
  std::shared_ptr<Model> model;
  ModelVersions versions;  // ModelUsage::versions
};
using SavedModels = std::map<std::string, SavedModel>;

/// The state of a run behind an iteration, but for what its models have copied of themselves. A plain value.
struct Cut {
  int64_t iterations = 0;                  // that are complete
  std::map<std::string, NodeState> nodes;  // by name
  MetricRow metrics;                       // of the last of them
  std::map<std::string, int64_t> growing;  // Manifest::growing, but for the files of nodes
};

/// Puts checkpoints into a run folder: beside their place, each file on the disk, then one rename; and removes those that
/// [checkpoint] lets go of. Whatever fails or is cut off, what was saved before is whole, and what is left behind is removed by
/// the next one. Not thread-safe.
class CheckpointWriter {
 public:
  struct Parts {
    const Plan& plan;                  // outlives this
    std::filesystem::path run_folder;  // exists
    SavedModels models;
    FileSystem& files;  // likewise
    std::function<void(const std::string& warning)>
        on_warning;  // what was saved is whole, but something old could not be removed
  };

  explicit CheckpointWriter(Parts parts) : parts_(std::move(parts)) {}

  /// Writes what the models have copied, with `cut`. Returns the checkpoint, RUN/checkpoints/N. Throws UserError (disk full).
  std::filesystem::path write(const Cut& cut);

 private:
  void fill(const std::filesystem::path& folder, const Cut& cut);
  void put_in_place(const std::filesystem::path& folder, const std::filesystem::path& place);
  void tidy(const std::filesystem::path& folder) noexcept;
  void remove_superfluous(const std::filesystem::path& folder);

  const Parts parts_;
};

/// Where a run has its checkpoints: RUN/checkpoints, or with [checkpoint] folder FOLDER/NAME, NAME being that of the run folder,
/// to which RUN/checkpoints is then a link. A folder RUN/checkpoints that is there stays in use. Throws UserError where a link
/// leads elsewhere: nobody who starts the run has said that it may write there.
std::filesystem::path checkpoints_folder(const std::filesystem::path& run_folder, const CheckpointSettings& settings);

/// Likewise; makes it, and the link. Throws UserError also when it cannot be made or there are another run's checkpoints.
std::filesystem::path make_checkpoints_folder(const std::filesystem::path& run_folder, const CheckpointSettings& settings,
                                              FileSystem& files);

}  // namespace sluice::engine
