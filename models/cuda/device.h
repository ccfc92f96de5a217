#pragma once

#include <optional>

#include "base/device_name.h"

namespace sluice::models {

/// What this machine or this LibTorch lacks for the GPU of this number, as far as that shows without loading anything large: the
/// driver, the number of devices that it knows, the files. Uses no tensor: use_cuda() may still come.
std::optional<MissingDevice> missing_gpu(int number);

/// Loads the CUDA part of LibTorch, and our own kernels where they were built. Throws UserError saying what is missing. Must come
/// before the process uses its first tensor, because LibTorch looks only once whether it has a CUDA part; call it from one
/// thread. Calling it again does nothing.
void use_cuda();

}  // namespace sluice::models
