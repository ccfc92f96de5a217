#pragma once

#include "models/cuda/training_kernels.h"

namespace sluice::tests {

/// The bodies of our kernels of training, run on the host: what libsluice_cuda.so has for GPUs, of memory of the host. Packs
/// are chosen as there; thread blocks are smaller.
const models::TrainingKernels& host_training_kernels();

}  // namespace sluice::tests
