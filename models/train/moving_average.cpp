#include "models/train/moving_average.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/lerp.h>

#include "base/error.h"
#include "models/kernels/parallel.h"

namespace sluice::models {
namespace {

constexpr int64_t kAverageGrain = 1 << 16;  // floats

}  // namespace

void move_average(const at::Tensor& average, const at::Tensor& live, double decay) {
  SLUICE_CHECK(average.numel() == live.numel() && average.device() == live.device(), "an average of other weights");
  if (!average.is_cpu()) {
    const at::NoGradGuard no_gradient;
    at::Tensor moved = average;
    moved.lerp_(live, 1 - decay);
    return;
  }
  auto* const mean = average.mutable_data_ptr<float>();
  const auto* const now = live.const_data_ptr<float>();
  const auto keeps = static_cast<float>(decay), takes = static_cast<float>(1 - decay);
  const bool from_mean = takes < .5F;
  parallel_ranges(average.numel(), kAverageGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const float difference = now[i] - mean[i];
      mean[i] = from_mean ? mean[i] + takes * difference : now[i] - keeps * difference;
    }
  });
}

}  // namespace sluice::models
