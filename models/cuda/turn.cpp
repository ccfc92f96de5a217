#include "models/cuda/turn.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty_like.h>
#include <torch/library.h>

#include "models/devices/streams.h"

namespace sluice::models {
namespace {

at::Tensor turned_by(const TrainingKernels& kernels, const at::Tensor& x, const at::Tensor& turns, bool back,
                     at::ScalarType dtype) {
  const at::Tensor in = x.contiguous(), by = turns.contiguous(), out = at::empty_like(in, dtype);
  check_launched("turn", kernels.turn({.x = in.const_data_ptr(),
                                       .turns = by.const_data_ptr<float>(),
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

at::Tensor own_turn(const at::Tensor& x, const at::Tensor& turns, bool back, at::ScalarType dtype) {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("sluice::turn", "")
                             .typed<at::Tensor(const at::Tensor&, const at::Tensor&, bool, at::ScalarType)>();
  return op.call(x, turns, back, dtype);
}

void offer_turn(torch::Library& library, const TrainingKernels& kernels) {
  library.impl("turn", [&kernels](const at::Tensor& x, const at::Tensor& turns, bool back, at::ScalarType dtype) {
    return turned_by(kernels, x, turns, back, dtype);
  });
}

}  // namespace sluice::models
