#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/problem.h"
#include "models/config/config_quantisation.h"
#include "models/folder/safetensors.h"
#include "models/layers/weight_names.h"

namespace sluice::models {

/// Which tensor of a folder holds a stored weight: some files leave the prefix of the family away.
std::string name_in(const TensorFolder& tensors, const StoredWeight& stored, const ModelConfig& config);

/// Tensors that are missing, of another shape or dtype than a model of `config` has, or left over; one problem each, in the order
/// of the model, then of the files. A value head may be missing. `stored`: matrices are there as codes (stored_codes.h).
Problems tensor_problems(const TensorFolder& tensors, const std::vector<ExpectedWeight>& expected, const ModelConfig& config,
                         Head head, const std::optional<StoredQuantisation>& stored);

/// A folder of tied embeddings may hold the output embedding all the same; what is wrong when it is not the input embedding.
/// Needs tensors without problems.
Problems tied_problems(const TensorFolder& tensors, const std::vector<ExpectedWeight>& expected, const ModelConfig& config);

/// Throws the problems as one error that lists at most twenty of them. Nothing when there are none.
void throw_tensor_problems(const Problems& problems, const TensorFolder& tensors, const ModelConfig& config);

}  // namespace sluice::models
