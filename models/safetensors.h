#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/file.h"
#include "models/safetensors_header.h"

namespace sluice::models {

/// The tensors of a Hugging Face folder: `model.safetensors`, or the shards that `model.safetensors.index.json` names.
/// Maps the files; reads a tensor when asked. Thread-safe for reading.
class TensorFolder {
 public:
  /// Throws UserError when neither is there, a shard is missing or damaged, or the index and the shards disagree.
  explicit TensorFolder(const std::filesystem::path& folder);

  /// In the order of the files and of their data.
  const std::vector<std::string>& names() const { return names_; }
  bool contains(const std::string& name) const { return places_.contains(name); }

  /// The tensor as float32. Throws UserError naming file and tensor when it is missing, has another shape or a dtype other than
  /// F32, BF16 or F16.
  at::Tensor read(const std::string& name, at::IntArrayRef shape) const;

  /// Where a message about this tensor should point: the file that holds it, or the folder's first file.
  std::string file_of(const std::string& name) const;

 private:
  struct Place {
    size_t file;
    TensorEntry entry;
  };

  void add_file(const std::filesystem::path& path);

  std::vector<std::string> file_names_;
  std::vector<MappedFile> files_;
  std::vector<std::string> names_;
  std::unordered_map<std::string, Place> places_;
};

/// Writes float32 CPU tensors in the given order, then syncs. The same tensors give the same bytes. Replaces `path` as a whole.
/// Throws UserError when the disk refuses.
void write_safetensors(const std::filesystem::path& path, const std::vector<std::pair<std::string, at::Tensor>>& tensors);

}  // namespace sluice::models
