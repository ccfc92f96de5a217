#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/file_system.h"
#include "engine/contract/model.h"
#include "models/folder/folder.h"
#include "models/forward/transformer.h"
#include "models/memory/host_copy.h"
#include "models/train/adamw.h"
#include "nodes/models/saved_versions.h"

namespace sluice::nodes {

/// A copy of what training changes of a model: the weights that are trained, both moments of the optimizer, its steps, and older
/// versions of those weights. What is frozen is shared with the model.
///
/// The memory of the copy is taken from the system at the first take(), and used again. One snapshot at a time: take() on the
/// thread that trains, then write() on any, while training goes on. bytes() from any thread.
class ModelSnapshot {
 public:
  /// All must outlive this.
  ModelSnapshot(const models::Transformer& live, const models::AdamW& optimizer, SavedVersions& versions);

  /// Gets the memory of the copy from the system. Else the first take() does.
  void prepare();

  /// Older versions than the newest are among the kept ones. Forgets a snapshot that was not written.
  void take(engine::VersionRange range);

  /// Writes the copy into `folder` as engine::Model says. `source`: whose configuration and tokenizer the model's folder gets.
  void write(const std::string& name, const std::filesystem::path& source, models::SavedAdapter adapter,
             const std::filesystem::path& folder, FileSystem& files);

  int64_t bytes() const { return weights_.bytes() + first_moments_.bytes() + second_moments_.bytes(); }

 private:
  models::Transformer frozen_in_time() const;
  void forget();

  const models::Transformer& live_;
  const models::AdamW& optimizer_;
  SavedVersions& versions_;
  models::HostCopy weights_, first_moments_, second_moments_;
  int64_t steps_ = 0;
  engine::VersionRange range_;
  std::vector<at::Tensor> older_;  // [range_.newest - range_.oldest], lent by versions_
  bool taken_ = false;             // and not written yet
};

}  // namespace sluice::nodes
