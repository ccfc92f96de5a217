#pragma once

#include <string>

#include "engine/contract/params/known_names.h"
#include "engine/contract/world/device_kind.h"
#include "nodes/models/model_problems.h"

namespace sluice::nodes {

/// Reports a `device` of `[models.NAME]` that is none, and warns of one that this machine or this build lacks: a pipeline may be
/// checked where it cannot run. False where it is none. Loads nothing.
bool check_device(const std::string& device, const engine::KnownNames& known, ModelProblems& problems);

/// NVIDIA's GPUs: "cuda".
engine::DeviceKind cuda_devices();

}  // namespace sluice::nodes
