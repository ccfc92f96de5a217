#pragma once

#include "models/config/config.h"

namespace sluice::models {

/// How a row is normalised: x / rms(x) * weight (Zhang and Sennrich 2019), the same with 1 + weight, or
/// (x - mean) / deviation * weight + bias (Ba et al. 2016).
struct RowNorm {
  NormKind kind = NormKind::kRms;
  const float* weight = nullptr;  // [size]
  const float* bias = nullptr;    // [size], or null
  double epsilon = 1e-6;          // on the mean square
};

}  // namespace sluice::models
