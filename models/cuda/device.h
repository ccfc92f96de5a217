#pragma once

#include <c10/core/Device.h>

#include <optional>
#include <string>
#include <string_view>

namespace sluice::models {

/// The device called `name`: "cpu" or "cuda:N" with a number N below 128. Nothing for any other text.
std::optional<at::Device> device_named(std::string_view name);

/// Why `device` cannot be computed on, and what to do about it.
struct MissingDevice {
  std::string what;
  std::string help;
};

/// What this machine or this LibTorch lacks for `device`, as far as that shows without loading anything large: the driver, the
/// number of devices that it knows, the files. Nothing for the CPU. Uses no tensor: use_cuda() may still come.
std::optional<MissingDevice> missing_device(at::Device device);

/// Loads the CUDA part of LibTorch, and our own kernels where they were built. Throws UserError saying what is missing. Must come
/// before the process uses its first tensor, because LibTorch looks only once whether it has a CUDA part; call it from one
/// thread. Calling it again does nothing.
void use_cuda();

}  // namespace sluice::models
