#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "base/problem.h"
#include "models/config/config_quantisation.h"
#include "models/folder/safetensors.h"
#include "models/layers/weight_names.h"

namespace sluice::models {

// A matrix of K inputs and N outputs that a folder holds quantised, under the name of its module, "model.layers.0.mlp.up_proj":
//
//                      GPTQ                                      AWQ
//   .qweight   I32     [K/8, N]: eight inputs a word             [K, N/8]: eight outputs a word
//   .qzeros    I32     [groups, N/8]: eight outputs a word       the same
//   .scales    float   [groups, N]                               the same
//   .g_idx     I32     [K]: the group of each input, in order    -
//
// The first of eight is in the lowest 4 bits; of AWQ these are of the outputs 0, 2, 4, 6, 1, 3, 5, 7. A weight is
// scale * (code - zero), where zero is what is stored, and one more in GPTQ's first format.

/// The tensors that a matrix may have.
std::vector<std::string> names_of_codes(const TensorFolder& tensors, const ExpectedWeight& weight, const ModelConfig& config);

/// Those that are missing, or of another shape or dtype.
Problems problems_of_codes(const TensorFolder& tensors, const ExpectedWeight& weight, const ModelConfig& config,
                           const StoredQuantisation& stored);

/// The matrix as quantised_rows.h has it; of tensors without problems. Throws UserError naming file and tensor for groups that
/// are out of order.
at::Tensor read_codes(const TensorFolder& tensors, const ExpectedWeight& weight, const ModelConfig& config,
                      const StoredQuantisation& stored);

}  // namespace sluice::models
