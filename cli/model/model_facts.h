#pragma once

#include <cstdint>

#include "models/config/config.h"
#include "models/layers/weight_names.h"

namespace sluice::cli {

/// Of all weights that a model of this configuration has.
int64_t parameters_of(const models::ModelConfig& config, models::Head head);

}  // namespace sluice::cli
