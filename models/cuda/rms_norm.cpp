#include "models/cuda/rms_norm.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <torch/library.h>

#include <algorithm>
#include <tuple>

#include "models/devices/streams.h"

namespace sluice::models {
namespace {

using TwoTensors = std::tuple<at::Tensor, at::Tensor>;

constexpr int64_t kMostSlices = 1024, kRowsOfASlice = 16;

TwoTensors rms_norm_by(const TrainingKernels& kernels, const at::Tensor& x, const at::Tensor& weight, double eps, bool from_one,
                       at::ScalarType dtype) {
  const at::Tensor in = x.contiguous(), by = weight.contiguous(), out = at::empty_like(in, dtype);
  const int64_t size = in.size(-1), rows = in.numel() / size;
  const at::Tensor inverses = at::empty({rows}, in.options());
  check_launched("rms_norm", kernels.rms_norm({.x = in.const_data_ptr<float>(),
                                               .weight = by.const_data_ptr<float>(),
                                               .out = out.mutable_data_ptr(),
                                               .inverses = inverses.mutable_data_ptr<float>(),
                                               .bfloat16 = dtype == at::kBFloat16,
                                               .from_one = from_one,
                                               .eps = static_cast<float>(eps),
                                               .rows = rows,
                                               .size = size,
                                               .device = in.device().index(),
                                               .stream = current_stream_on(in.device())}));
  return {out, inverses};
}

TwoTensors rms_norm_backward_by(const TrainingKernels& kernels, const at::Tensor& grad, const at::Tensor& x,
                                const at::Tensor& weight, const at::Tensor& inverses, bool from_one, bool wants_x,
                                bool wants_weight) {
  const at::Tensor of_out = grad.contiguous(), in = x.contiguous(), by = weight.contiguous();
  const int64_t size = in.size(-1), rows = in.numel() / size;
  const int64_t slices = std::min(kMostSlices, (rows + kRowsOfASlice - 1) / kRowsOfASlice);
  const at::Tensor of_x = at::empty(wants_x ? in.sizes() : at::IntArrayRef({0}), in.options());
  const at::Tensor sums = at::empty({wants_weight ? slices : 0, size}, in.options());
  check_launched("rms_norm_backward",
                 kernels.rms_norm_backward({.grad = of_out.const_data_ptr(),
                                            .x = in.const_data_ptr<float>(),
                                            .weight = by.const_data_ptr<float>(),
                                            .inverses = inverses.const_data_ptr<float>(),
                                            .of_x = wants_x ? of_x.mutable_data_ptr<float>() : nullptr,
                                            .of_weight = wants_weight ? sums.mutable_data_ptr<float>() : nullptr,
                                            .bfloat16 = of_out.scalar_type() == at::kBFloat16,
                                            .from_one = from_one,
                                            .rows = rows,
                                            .size = size,
                                            .slices = slices,
                                            .device = in.device().index(),
                                            .stream = current_stream_on(in.device())}));
  return {of_x, sums.sum(0)};
}

}  // namespace

RmsNormed own_rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps, bool from_one, at::ScalarType dtype) {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("sluice::rms_norm", "")
                             .typed<TwoTensors(const at::Tensor&, const at::Tensor&, double, bool, at::ScalarType)>();
  const auto [out, inverses] = op.call(x, weight, eps, from_one, dtype);
  return {out, inverses};
}

RmsNormGradients own_rms_norm_backward(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& weight,
                                       const at::Tensor& inverses, bool from_one, bool wants_x, bool wants_weight) {
  static const auto op =
      c10::Dispatcher::singleton()
          .findSchemaOrThrow("sluice::rms_norm_backward", "")
          .typed<TwoTensors(const at::Tensor&, const at::Tensor&, const at::Tensor&, const at::Tensor&, bool, bool, bool)>();
  const auto [of_x, of_weight] = op.call(grad, x, weight, inverses, from_one, wants_x, wants_weight);
  return {of_x, of_weight};
}

void offer_rms_norm(torch::Library& library, const TrainingKernels& kernels) {
  library.impl("rms_norm", [&kernels](const at::Tensor& x, const at::Tensor& weight, double eps, bool from_one,
                                      at::ScalarType dtype) { return rms_norm_by(kernels, x, weight, eps, from_one, dtype); });
  library.impl("rms_norm_backward", [&kernels](const at::Tensor& grad, const at::Tensor& x, const at::Tensor& weight,
                                               const at::Tensor& inverses, bool from_one, bool wants_x, bool wants_weight) {
    return rms_norm_backward_by(kernels, grad, x, weight, inverses, from_one, wants_x, wants_weight);
  });
}

}  // namespace sluice::models
