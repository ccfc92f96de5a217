#pragma once

#include <filesystem>

#include "base/files/file_system.h"
#include "models/forward/transformer.h"

namespace sluice::models {

// Adapters as PEFT's format has them: adapter_config.json, and adapter_model.safetensors with the tensors
// "base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight". A tensor of the file that is several matrices of ours (Phi-3,
// GPT-2) has one adapter there: the factors a one below the other, and the factors b as blocks on the diagonal, which is the same
// change at a rank that many times as large. PEFT itself makes one of the rank of a part, whose factor a all parts share: that is
// read too, and each part begins with a copy of it. The value head of a critic goes with it, as a module to save.

/// Writes the adapters of `model`, which has some, into `folder`, which it makes. `base` is the folder of the model that they
/// change. All of it is on the disk on return, but a crash may leave a part. Throws UserError when the disk refuses.
void write_adapter(const Transformer& model, const std::filesystem::path& base, const std::filesystem::path& folder,
                   FileSystem& files = disk());

/// Whether read_adapter() would take the adapter for the matrices of `weights` that have one: reads adapter_config.json, the
/// header of the tensors, and of those that are several matrices of ours the factors b. Tensors of `weights` need sizes, but no
/// values. Throws as read_adapter() does.
void check_adapter(const Weights& weights, const std::filesystem::path& folder);

/// Takes over the values of adapters that write_adapter() or PEFT has written, into those that `weights` has. Throws UserError
/// naming file and cause: damaged, of another kind than LoRA, or of other matrices, ranks or scales than these.
void read_adapter(Weights& weights, const std::filesystem::path& folder);

}  // namespace sluice::models
