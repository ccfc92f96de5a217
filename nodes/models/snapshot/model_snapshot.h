#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <future>
#include <optional>
#include <string>
#include <vector>

#include "base/files/file_system.h"
#include "engine/contract/model.h"
#include "engine/contract/world/world.h"
#include "models/folder/folder.h"
#include "models/forward/transformer.h"
#include "models/memory/host_copy.h"
#include "models/train/adamw.h"
#include "nodes/models/snapshot/snapshot_files.h"
#include "nodes/models/weights/saved_versions.h"

namespace sluice::nodes {

/// What training changes of a model, at a moment: the weights that are trained, both moments of the optimizer, its steps, and
/// older versions of those weights. A copy, or the live ones until they change. What is frozen is shared with the model. Of
/// several ranks each has, and writes, what it owns of the optimizer and its share of the files of the model's folder; rank 0 the
/// rest.
///
/// The memory of the copy is taken from the system at the first take() that copies, and used again. One snapshot at a time:
/// take() on the thread that trains, then write(): of a copy on any thread, while training goes on. bytes() from any thread.
class ModelSnapshot {
 public:
  /// All must outlive this. `adapter`: the form of the model's folder.
  ModelSnapshot(const models::Transformer& live, const models::AdamW& optimizer, SavedVersions& versions, engine::World world,
                models::SavedAdapter adapter);

  /// Of weights that ranks have in common: copies of them go to `copy`, [floats], which they have in common too, this rank's
  /// `part` by itself; `meet` calls back when all ranks have called it as often. Before anything is taken.
  using Meet = std::function<void(const std::function<void()>& done)>;
  void copy_to(at::Tensor copy, std::vector<FloatRange> part, Meet meet);

  /// Gets the memory of the copy from the system. Else the first take() that copies does.
  void prepare();

  /// Older versions than the newest are among the kept ones. Forgets a snapshot that was not written.
  void take(engine::VersionRange range, engine::CheckpointCopy copy);

  /// Writes the snapshot into `folder` as engine::Model says. `source`: whose configuration and tokenizer the model's folder
  /// gets.
  void write(const std::string& name, const std::filesystem::path& source, const std::filesystem::path& folder,
             FileSystem& files);

  models::SaveOptions save_options() const;  // of the model's folder
  int64_t bytes() const;

 private:
  struct Taken {
    TrainingState state;
    models::NamedTensors weights;  // of the folder; empty: this rank writes nothing of it
  };

  SnapshotWriter writer() const;
  bool writes_state() const { return optimizer_.owners() > 1 || world_.rank == 0; }
  std::vector<FloatRange> kept_weights() const;
  void take_live();
  void take_copy();
  void copy_moments();
  void copy_in_common();
  TrainingState state_of(const std::vector<models::Stretch>& weights, const at::Tensor& first_moments,
                         const at::Tensor& second_moments) const;
  void forget();

  const models::Transformer& live_;
  const models::AdamW& optimizer_;
  SavedVersions& versions_;
  const engine::World world_;
  const models::SavedAdapter adapter_;
  const bool writes_folder_;
  models::HostCopy weights_, first_moments_, second_moments_;
  at::Tensor common_;             // undefined: copies of weights are of this rank alone
  std::vector<FloatRange> part_;  // of it, that this rank copies
  Meet meet_;
  std::atomic<bool> has_common_copy_ = false;
  std::future<void> copied_;    // by all ranks, what is taken from common_
  std::optional<Taken> taken_;  // and not written yet
  engine::VersionRange range_;
  std::vector<at::Tensor> older_;  // [range_.newest - range_.oldest], lent by versions_
};

}  // namespace sluice::nodes
