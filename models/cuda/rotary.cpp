#include "models/cuda/rotary.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty_like.h>
#include <torch/library.h>

#include "models/devices/streams.h"

namespace sluice::models {
namespace {

at::Tensor rotated_by(const TrainingKernels& kernels, const at::Tensor& x, const at::Tensor& angles, bool back,
                      at::ScalarType dtype) {
  const at::Tensor in = x.contiguous(), by = angles.contiguous(), out = at::empty_like(in, dtype);
  check_launched("rotary", kernels.rotary({.x = in.const_data_ptr(),
                                           .angles = by.const_data_ptr<float>(),
                                           .out = out.mutable_data_ptr(),
                                           .bfloat16_in = in.scalar_type() == at::kBFloat16,
                                           .bfloat16_out = dtype == at::kBFloat16,
                                           .back = back,
                                           .tokens = in.size(0),
                                           .heads = static_cast<int32_t>(in.size(1)),
                                           .head_dim = static_cast<int32_t>(in.size(2)),
                                           .dims = static_cast<int32_t>(by.size(1)),
                                           .device = in.device().index(),
                                           .stream = current_stream_on(in.device())}));
  return out;
}

}  // namespace

at::Tensor own_rotary(const at::Tensor& x, const at::Tensor& angles, bool back, at::ScalarType dtype) {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("sluice::rotary", "")
                             .typed<at::Tensor(const at::Tensor&, const at::Tensor&, bool, at::ScalarType)>();
  return op.call(x, angles, back, dtype);
}

void offer_rotary(torch::Library& library, const TrainingKernels& kernels) {
  library.impl("rotary", [&kernels](const at::Tensor& x, const at::Tensor& angles, bool back, at::ScalarType dtype) {
    return rotated_by(kernels, x, angles, back, dtype);
  });
}

}  // namespace sluice::models
