#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "models/folder/safetensors.h"
#include "models/train/flat_parameters.h"

namespace sluice::nodes {

/// The float32 tensors of some files that several ranks have written, each its own part: a tensor is there as a whole under its
/// name, or in pieces `NAME[first:end]`, first and end counting its elements in row-major order. Which rank wrote what means
/// nothing to who reads. Thread-safe for reading.
class StoredPieces {
 public:
  /// Throws UserError when a file is missing or damaged.
  explicit StoredPieces(const std::vector<std::filesystem::path>& files);

  static std::string name_of(const std::string& tensor, int64_t first, int64_t end);

  /// Each tensor once, in the order of the files.
  const std::vector<std::string>& names() const { return names_; }

  const std::vector<models::TensorFolder>& files() const { return files_; }

  /// Why a tensor of this shape cannot be read, which reads all of it: missing, another shape or type, damage, or elements that
  /// no file has, or two. Empty: it can.
  std::string problem_with(const std::string& tensor, at::IntArrayRef shape) const;

  /// Fills `piece.values`, of a tensor without problems.
  void read_into(const models::TensorPiece& piece) const;

  /// Where a message about this tensor should point.
  std::string file_of(const std::string& tensor) const;

 private:
  struct Part {
    const models::TensorFolder* file;
    std::string stored;  // its name in the file
    int64_t first = 0;
    int64_t end = -1;  // -1: all of the tensor
  };

  std::string problem_with(const Part& part, const std::string& where, at::IntArrayRef shape) const;

  std::vector<models::TensorFolder> files_;
  std::vector<std::string> names_;
  std::map<std::string, std::vector<Part>> parts_;  // by tensor, in order
};

}  // namespace sluice::nodes
