#pragma once

#include <cstdint>

#include "models/config/config.h"
#include "models/config/precision.h"

namespace sluice::models::portable {

/// One pass over a packed micro-batch on a device.
struct DevicePass {
  bool training = false;    // forward, backward and optimizer step; otherwise a forward without gradient
  bool value_head = false;  // one number a token instead of log-probabilities
  bool adapters = false;    // training: of these alone
  int64_t tokens = 0;       // of the micro-batch, every one taken to be an action; of what this rank computes of it
  Precision precision = Precision::kFloat32;
  bool recompute = false;  // a layer keeps its input alone
  int64_t ranks = 1;       // that compute the pass together
};

/// What a pass takes of the device at its peak beside weights, gradients and optimizer state. An upper bound: tensors that
/// LibTorch's operators give and keep for the backward, each as if none of them were fused. What its kernels take for themselves
/// is not among it.
int64_t activation_bytes(const ModelConfig& config, const DevicePass& pass);

}  // namespace sluice::models::portable
