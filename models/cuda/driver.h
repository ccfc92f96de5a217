#pragma once

#include <cstdint>

namespace sluice::models {

// What NVIDIA's driver says of this machine, without LibTorch. It looks at CUDA_VISIBLE_DEVICES once a process.

inline constexpr const char* kDriverLibrary = "libcuda.so.1";

bool has_driver();

/// How many GPUs it shows; 0: none, or there is no driver.
int gpus_of_driver();

/// How much memory the GPU of this number has; 0: it does not say.
int64_t memory_of_gpu(int number);

}  // namespace sluice::models
