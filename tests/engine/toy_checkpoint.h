#pragma once

#include <filesystem>
#include <memory>

#include "engine/checkpoint/checkpoint_writer.h"
#include "tests/engine/toy_world.h"

namespace sluice::engine::toy {

/// A run folder of a plan that trains one toy model, and checkpoints of it that are told apart by their weights.
class ToyRunFolder {
 public:
  /// `folder` is new; [checkpoint] keep_last = 1.
  explicit ToyRunFolder(const std::filesystem::path& folder);

  /// Writes the checkpoint of so many complete iterations, with one older version of the weights. With kNone the model is written
  /// as soon as the checkpoint is begun, and changes before the rest is. Throws UserError.
  void save(int64_t iterations, FileSystem& files, CheckpointCopy copy = CheckpointCopy::kMemory);

  /// Whether the newest intact checkpoint is that of so many iterations, the link leads to it, and nothing in it is another's.
  static bool holds(const std::filesystem::path& folder, int64_t iterations);

  const std::filesystem::path& path() const { return folder_; }

 private:
  const std::filesystem::path folder_;
  Plan plan_;
  std::shared_ptr<ToyModel> model_ = std::make_shared<ToyModel>("policy");
};

}  // namespace sluice::engine::toy
