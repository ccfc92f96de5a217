#pragma once

#include <c10/core/DispatchKey.h>

#include <string>

#include "models/cuda/training_kernels.h"

namespace torch {
class Library;
}

// Our operators of training: gated.h, rms_norm.h, rotary.h, logit_rows.h, flat_step.h. LibTorch knows them from
// declare_training_operators() on; a device has a kernel for them or not (portable/abilities.h). GPUs have ours, on the calling
// thread's stream (streams.h). None has a gradient of its own: who calls them is a function of autograd (models/portable/).
namespace sluice::models {

/// Once a process, or again; from any thread.
void declare_training_operators();

/// From here on GPUs have a kernel for each of them: ours, which are loaded. Once a process, or again; from any thread.
void offer_training_operators();

/// Tells LibTorch of these kernels, by `library`, which is of the namespace "sluice" and of the devices that have them. What is
/// told holds as long as `library` lives, and `kernels` must live as long.
void offer_training_operators(torch::Library& library, const TrainingKernels& kernels);

/// Throws InternalError if a kernel returned what failed.
void check_launched(const char* name, const char* failure);

}  // namespace sluice::models
