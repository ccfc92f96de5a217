#pragma once

#include <cstdint>
#include <string>

#include "engine/contract/params/param_set.h"

namespace sluice::nodes {

/// How a model follows another one, as its moving average (nodes/models/averaged_model.h).
///
///   ema = { of = "actor", decay = 0.99, every_steps = 1 }
struct EmaParams {
  std::string of;           // the model that it follows
  double decay = 0.99;      // what stays of the average at each move
  int64_t every_steps = 1;  // of the other's optimizer, after which it moves
};

engine::ParamSet<EmaParams> ema_params();

}  // namespace sluice::nodes
