#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <string>

#include "models/layers/weight_names.h"

namespace sluice::models {

/// The random stream of a tensor of this name: the same everywhere.
uint64_t stream_of_name(const std::string& name);

/// A weight as it is before any training, of `dtype`. Norms begin at one, biases and value heads at zero, matrices are normal
/// with the spread of the configuration; a matrix depends on `seed` and its name only: another order or another layer count
/// changes none. Beside the weight a megabyte is held.
at::Tensor fresh_weight(const ExpectedWeight& weight, const ModelConfig& config, uint64_t seed, at::ScalarType dtype);

}  // namespace sluice::models
