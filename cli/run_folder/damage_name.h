#pragma once

#include <filesystem>
#include <string>

#include "engine/checkpoint/checkpoint_folder.h"

namespace sluice::cli {

/// What is wrong with the checkpoint in `folder`, by file and, where a file of tensors has other bytes than it should, by tensor:
/// `actor/model.safetensors: tensor "lm_head.weight" has another checksum than when it was saved`. Reads that file.
std::string damage_text(const std::filesystem::path& folder, const engine::Damage& damage);

}  // namespace sluice::cli
