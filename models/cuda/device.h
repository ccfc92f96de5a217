#pragma once

#include <c10/core/Device.h>

#include <optional>
#include <string_view>

#include "base/device_name.h"

namespace sluice::models {

/// The device called `name`: "cpu", "cuda:N" with a number N below 128, or the same of a back end that a plugin has registered
/// with LibTorch under a name of its own (PrivateUse1). Nothing for any other text.
std::optional<at::Device> device_named(std::string_view name);

/// What this machine or this LibTorch lacks for the GPU of this number, as far as that shows without loading anything large: the
/// driver, the number of devices that it knows, the files. Uses no tensor: use_cuda() may still come.
std::optional<MissingDevice> missing_gpu(int number);

/// Whether this machine has the driver, and how many GPUs that shows, which is what it looks up once a process.
bool has_driver();
int gpus_of_driver();

/// How much memory the GPU of this number has, as its driver says; 0: it does not.
int64_t memory_of_gpu(int number);

/// Loads the CUDA part of LibTorch, and our own kernels where they were built. Throws UserError saying what is missing. Must come
/// before the process uses its first tensor, because LibTorch looks only once whether it has a CUDA part; call it from one
/// thread. Calling it again does nothing.
void use_cuda();

}  // namespace sluice::models
