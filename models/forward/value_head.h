#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "models/config/config.h"
#include "models/layers/pass_shape.h"

namespace sluice::models {

/// What a value head makes of each row of `hidden`.
///
/// hidden  [A,H]  float32
/// head    [1,H]  a leaf, of any floating type
/// returns [A]    float32, differentiable in hidden and head
///
/// On the CPU a row has the same bits whatever the other rows and the number of threads are, which no library's product of a
/// matrix and a vector promises. On a device it is the library's. Throws InternalError on a shape mismatch.
at::Tensor head_values(const at::Tensor& hidden, const at::Tensor& head);

/// What it takes for so many rows beside `hidden`.
PartBytes head_values_bytes(const ModelConfig& config, int64_t rows);

}  // namespace sluice::models
