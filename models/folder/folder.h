#pragma once

#include <array>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "base/files/file_system.h"
#include "models/config/config_families.h"
#include "models/config/output_head.h"
#include "models/config/quantisation.h"
#include "models/folder/file_share.h"
#include "models/forward/transformer.h"
#include "models/layers/weight_names.h"

namespace sluice::models {

struct LoadOptions {
  Head head = Head::kLanguageModel;
  bool random_init = false;  // only config.json and the tokenizer of the folder are used
  uint64_t seed = 0;         // of the random initialisation; a value head that the folder does not have is zero
  bool trainable = false;    // every weight gets requires_grad, but for those that are frozen
  std::function<bool(const std::string& name)> frozen;  // of a trainable model; none: no weight is
  at::ScalarType dtype = at::kFloat;                    // of the weights; kBFloat16: for forward passes only
  at::Device device = at::kCPU;                         // where the weights are
  Compute compute;
  std::span<const Family> families = builtin_families();        // which config.json may name; they outlive the model
  std::function<void(Weights& weights, int64_t layer)> loaded;  // see load_transformer(); none: nobody takes weights
  std::function<at::Tensor(const ExpectedWeight& weight, const at::Tensor& read)> placed;  // likewise
  QuantisationOptions quantisation;  // of the matrices of layers, as each is read; they must not be trained, on the CPU. One that
                                     // the folder has (StoredQuantisation) goes before
  bool narrow_operands = false;      // is_operand() weights that get no gradient are kept in the precision of `compute`
};

/// Reads a Hugging Face folder into weights of options.dtype; the files may hold float32, bfloat16 or float16. Peak memory is
/// that of the weights and a few megabytes. Throws UserError naming file and tensor: missing, of a wrong shape or dtype, or left
/// over; all of them at once. See LoadOptions for random weights.
///
/// options.loaded(weights, layer) is called as soon as a layer is whole, and with -1 when all before the layers is, and all
/// after them. It may take tensors away, which are then not held: so a model need never be there as a whole. On the CPU, of a
/// model that is not trained.
///
/// options.placed() gives each weight the place where it stays, as soon as it is read: the tensor that it returns, of the same
/// shape and dtype. On the CPU.
Transformer load_transformer(const std::filesystem::path& folder, const LoadOptions& options);

/// Throws what load_transformer() would say of the files with the weights: that they are missing, cut off, or of another model.
/// Reads their headers alone.
void check_weights(const std::filesystem::path& folder, Head head);

/// What is written of a model with adapters: itself with them merged in, the adapters as PEFT has them (adapter_folder.h), or the
/// first with the second in its subfolder "adapter". A model without adapters is written as it is.
enum class SavedAdapter { kMerged, kAdapter, kBoth };

constexpr std::array<std::pair<SavedAdapter, const char*>, 3> enum_names(SavedAdapter) {
  return {{{SavedAdapter::kMerged, "merged"}, {SavedAdapter::kAdapter, "adapter"}, {SavedAdapter::kBoth, "both"}}};
}

struct SaveOptions {
  size_t max_shard_bytes = 5'000'000'000;  // of tensors in one file; more than one file get an index
  std::optional<at::ScalarType> dtype;     // float32, bfloat16 or float16; nothing: that of the model's norms
  SavedAdapter adapter = SavedAdapter::kMerged;
  FileShare share;  // of the model's files; number 0 writes all others
};

/// Whether who has options.share of the folder has any file of it to write.
bool writes_folder(const Transformer& model, const SaveOptions& options);

/// Writes `model` as a Hugging Face folder that transformers can load: config.json of `source_folder` adapted to what is saved,
/// the tensors with their checksums, and the tokenizer's files and chat template of `source_folder`. `folder` is a new one, made
/// here: a part of something that is not yet in its place, since a crash leaves a part of it. All of it is on the disk on return.
/// Throws UserError when the disk refuses.
void write_folder(const Transformer& model, const std::filesystem::path& source_folder, const std::filesystem::path& folder,
                  const SaveOptions& options, FileSystem& files = disk());

}  // namespace sluice::models
