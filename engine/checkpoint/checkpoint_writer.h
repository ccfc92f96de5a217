#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "base/files/file_system.h"
#include "engine/checkpoint/manifest.h"
#include "engine/checkpoint/saved_models.h"

namespace sluice::engine {

/// The state of a run after an iteration, but for its models, which are written for themselves. A plain value.
struct Cut {
  int64_t iterations = 0;                  // that are complete
  std::map<std::string, NodeState> nodes;  // by name
  MetricRow metrics;                       // of the last of them
  std::map<std::string, int64_t> growing;  // Manifest::growing, but for the files of nodes
};

/// Puts checkpoints into a run folder: beside their place, each file on the disk, then one rename; and removes those that
/// [checkpoint] lets go of. Whatever fails or is cut off, what was saved before is whole, and what is left after is removed by
/// the next one.
///
/// One checkpoint at a time: begin(), then each model, in any order and from threads of their own where their weights must not
/// change meanwhile, then finish(), or drop(). Only begin() and write_model() of different models may be called at once. They
/// throw UserError (disk full): what was begun is then to be dropped.
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

  /// Makes the folder of the checkpoint after so many iterations, without what a crash has left there; once, however often it is
  /// called. Another one that was begun is dropped.
  void begin(int64_t iterations);

  /// Writes the snapshot that the model has taken of itself.
  void write_model(const std::string& name);

  /// Adds what is not the models', and puts the checkpoint in its place. Returns that, RUN/checkpoints/N.
  std::filesystem::path finish(const Cut& cut);

  /// Removes what was begun and not finished, if there is any. What cannot be removed is left to the next checkpoint.
  void drop() noexcept;

 private:
  void complete(const Cut& cut);
  void sync_growing(const std::string& name, const Cut& cut);
  void put_in_place(const std::filesystem::path& folder, const std::filesystem::path& place);
  void tidy(const std::filesystem::path& folder) noexcept;
  void remove_superfluous(const std::filesystem::path& folder);

  const Parts parts_;
  std::mutex mutex_;                  // of begin()
  int64_t begun_ = -1;                // iterations of the checkpoint that is being written; -1: none
  std::filesystem::path folder_;      // of all checkpoints
  std::filesystem::path unfinished_;  // of that one
};

}  // namespace sluice::engine
