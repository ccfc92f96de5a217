#pragma once

#include <filesystem>

#include "models/transformer.h"

namespace sluice::models {

/// Reads a Hugging Face folder into float32 weights. Throws UserError naming file and tensor: missing, of a wrong shape or dtype,
/// or left over. See LoadOptions for random weights.
Transformer load_folder(const std::filesystem::path& folder, const LoadOptions& options);

/// Writes `model` as a Hugging Face folder that transformers can load: config.json of `source_folder` adapted to what is saved,
/// model.safetensors, and the tokenizer's files of `source_folder`. `target` is replaced as a whole: after a crash it holds the
/// old or the new model, never a mixture. May be the source folder. Throws UserError when the disk refuses.
void save_folder(const Transformer& model, const std::filesystem::path& source_folder, const std::filesystem::path& target);

}  // namespace sluice::models
