#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/files/file_system.h"
#include "models/folder/file_share.h"
#include "models/layers/weights.h"

namespace sluice::models {

// What is written is on the disk on return, under its final names: somebody who reads meanwhile, or a crash, sees a part of it.
// Write into a new folder that then takes its place as a whole, and make its names durable (sync_folder).

/// A tensor to write: parts [outputs, ...] that lie one after the other along the outputs. On any device. int64 stays as it is.
struct OutputTensor {
  std::string name;
  std::vector<at::Tensor> parts;
  std::vector<Adapter> adapters = {};  // of the parts, which are written merged with them; empty: none has one
  bool transposed = false;             // written as [inputs, outputs]
};

struct WriteOptions {
  at::ScalarType dtype = at::kFloat;  // or kBFloat16, kHalf; of all tensors but int64 ones
  size_t max_file_bytes = 5'000'000'000;
  FileShare share;  // number 0 writes the index
};

/// Writes tensors in the given order as `folder`/model.safetensors, or where they take more than max_file_bytes as
/// model-00001-of-0000N.safetensors, ... and model.safetensors.index.json. A tensor larger than that has a file of
/// its own. The metadata holds "format": "pt" and the checksum of every tensor (kChecksumKey). The same tensors give the same
/// bytes. Works through some megabytes at a time, however large a tensor is. Throws UserError when the disk refuses.
void write_model_files(const std::filesystem::path& folder, const std::vector<OutputTensor>& tensors, const WriteOptions& options,
                       FileSystem& files = disk());

/// How many files of tensors that makes.
size_t count_model_files(const std::vector<OutputTensor>& tensors, const WriteOptions& options);

/// Any other file of such a folder.
void write_text(const std::filesystem::path& path, std::string_view text, FileSystem& files = disk());

/// One file of whole float32 or int64 tensors, with their checksums.
void write_safetensors(const std::filesystem::path& path, const std::vector<std::pair<std::string, at::Tensor>>& tensors,
                       FileSystem& files = disk());

}  // namespace sluice::models
