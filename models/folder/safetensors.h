#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/files/file.h"
#include "models/folder/safetensors_header.h"

namespace sluice::models {

/// The type that tensors of a dtype of the format have here; nothing for a dtype that weights are not read from.
std::optional<at::ScalarType> readable_type(const std::string& dtype);

/// "[40, 32]".
std::string shape_text(at::IntArrayRef shape);

/// The tensors of a Hugging Face folder: `model.safetensors`, or the shards that `model.safetensors.index.json` names.
/// Maps the files; reads a tensor when asked, a megabyte at a time, and keeps none of the file in memory afterwards.
/// Thread-safe for reading.
class TensorFolder {
 public:
  /// Throws UserError when neither is there, a shard is missing or damaged, or the index and the shards disagree.
  explicit TensorFolder(const std::filesystem::path& folder);

  /// The tensors of one file, whatever its name. Throws UserError when it is missing or damaged.
  static TensorFolder of_file(const std::filesystem::path& file);

  /// Whether the folder holds one of the two.
  static bool is_in(const std::filesystem::path& folder);

  /// In the order of the files and of their data.
  const std::vector<std::string>& names() const { return names_; }
  const std::vector<std::string>& files() const { return file_names_; }
  bool contains(const std::string& name) const { return places_.contains(name); }

  /// What the header says of a tensor that is there.
  const TensorEntry& entry(const std::string& name) const;

  /// Where a message about this tensor should point: the file that holds it, or the folder's first file.
  std::string file_of(const std::string& name) const;

  /// Calls visit(rows, first) for a tensor of a readable dtype, some rows at a time: rows [R, ...] as stored, of which the first
  /// is number `first` along the first dimension. `rows` may be a view of the
  /// file: it must not be changed, and is only valid during the call.
  void for_each_rows(const std::string& name, const std::function<void(const at::Tensor& rows, int64_t first)>& visit) const;

  /// The bytes of any tensor, some at a time.
  void for_each_bytes(const std::string& name, const std::function<void(std::string_view bytes)>& visit) const;

  /// Copies the indices [first, first + target.size(dim)) along dimension `dim` of a tensor of a readable dtype into `target`,
  /// converting to its dtype. `target` may have any strides; its other sizes are those of the tensor. Throws UserError naming
  /// file and tensor where a value is not finite.
  void read_into(const std::string& name, int64_t dim, int64_t first, const at::Tensor& target) const;

  /// The whole tensor as float32. Throws UserError naming file and tensor when it is missing, has another shape or a dtype other
  /// than F32, BF16 or F16, or a value is not finite.
  at::Tensor read(const std::string& name, at::IntArrayRef shape) const;

  /// Empty when the bytes of a tensor have the checksum that the file gives them, or it gives none; else file, tensor and both
  /// checksums. Reads all of it.
  std::string damage_of(const std::string& name) const;

  /// Why read() with this shape would throw; empty: it would not.
  std::string problem_with(const std::string& name, at::IntArrayRef shape) const;

 private:
  struct Place {
    size_t file;
    TensorEntry entry;
  };

  TensorFolder() = default;

  void add_file(const std::filesystem::path& path);
  void add_shards(const std::filesystem::path& folder, const std::filesystem::path& index);
  const Place& place(const std::string& name) const;

  std::vector<std::string> file_names_;
  std::vector<MappedFile> files_;
  std::vector<std::string> names_;
  std::unordered_map<std::string, Place> places_;
};

}  // namespace sluice::models
