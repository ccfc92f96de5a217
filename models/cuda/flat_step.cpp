#include "models/cuda/flat_step.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty.h>
#include <torch/library.h>

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "models/devices/streams.h"

namespace sluice::models {
namespace {

void adamw_step_by(const TrainingKernels& kernels, const at::Tensor& weights, const at::Tensor& gradients,
                   const at::Tensor& first_moments, const at::Tensor& second_moments, const at::Tensor& written,
                   const AdamWFactors& factors) {
  for (const at::Tensor& buffer : {weights, gradients, first_moments, second_moments, written})
    SLUICE_CHECK(!buffer.defined() || (buffer.is_contiguous() && buffer.numel() == weights.numel()),
                 "buffers of one size, contiguous");
  check_launched("adamw_step", kernels.adamw({.weights = weights.mutable_data_ptr<float>(),
                                              .gradients = gradients.mutable_data_ptr<float>(),
                                              .first_moments = first_moments.mutable_data_ptr<float>(),
                                              .second_moments = second_moments.mutable_data_ptr<float>(),
                                              .written = written.defined() ? written.mutable_data_ptr() : nullptr,
                                              .bfloat16 = written.defined() && written.scalar_type() == at::kBFloat16,
                                              .gradient_scale = factors.gradient_scale,
                                              .new_first = factors.new_first,
                                              .new_second = factors.new_second,
                                              .kept = factors.kept,
                                              .step_size = factors.step_size,
                                              .root_scale = factors.root_scale,
                                              .epsilon = factors.epsilon,
                                              .count = weights.numel(),
                                              .device = weights.device().index(),
                                              .stream = current_stream_on(weights.device())}));
}

at::Tensor sum_of_squares_by(const TrainingKernels& kernels, const at::Tensor& values) {
  const at::Tensor in = values.contiguous();
  const int64_t parts = (in.numel() + kSquaresOfABlock - 1) / kSquaresOfABlock;
  const at::Tensor partial = at::empty({parts}, in.options().dtype(at::kDouble)), total = at::empty({}, partial.options());
  check_launched("sum_of_squares", kernels.squares({.values = in.const_data_ptr<float>(),
                                                    .partial = partial.mutable_data_ptr<double>(),
                                                    .total = total.mutable_data_ptr<double>(),
                                                    .count = in.numel(),
                                                    .device = in.device().index(),
                                                    .stream = current_stream_on(in.device())}));
  return total;
}

}  // namespace

void own_adamw_step(const at::Tensor& weights, const at::Tensor& gradients, const at::Tensor& first_moments,
                    const at::Tensor& second_moments, const at::Tensor& written, const AdamWFactors& factors) {
  static const auto op =
      c10::Dispatcher::singleton()
          .findSchemaOrThrow("sluice::adamw_step", "")
          .typed<void(const at::Tensor&, const at::Tensor&, const at::Tensor&, const at::Tensor&,
                      const std::optional<at::Tensor>&, double, double, double, double, double, double, double)>();
  const auto also = written.defined() ? std::optional<at::Tensor>(written) : std::nullopt;
  op.call(weights, gradients, first_moments, second_moments, also, factors.gradient_scale, factors.new_first, factors.new_second,
          factors.kept, factors.step_size, factors.root_scale, factors.epsilon);
}

at::Tensor own_sum_of_squares(const at::Tensor& values) {
  static const auto op =
      c10::Dispatcher::singleton().findSchemaOrThrow("sluice::sum_of_squares", "").typed<at::Tensor(const at::Tensor&)>();
  return op.call(values);
}

void offer_flat_step(torch::Library& library, const TrainingKernels& kernels) {
  library.impl("adamw_step",
               [&kernels](const at::Tensor& weights, const at::Tensor& gradients, const at::Tensor& first_moments,
                          const at::Tensor& second_moments, const std::optional<at::Tensor>& written, double gradient_scale,
                          double new_first, double new_second, double kept, double step_size, double root_scale, double epsilon) {
                 adamw_step_by(kernels, weights, gradients, first_moments, second_moments, written.value_or(at::Tensor()),
                               {.gradient_scale = static_cast<float>(gradient_scale),
                                .new_first = static_cast<float>(new_first),
                                .new_second = static_cast<float>(new_second),
                                .kept = static_cast<float>(kept),
                                .step_size = static_cast<float>(step_size),
                                .root_scale = static_cast<float>(root_scale),
                                .epsilon = static_cast<float>(epsilon)});
               });
  library.impl("sum_of_squares", [&kernels](const at::Tensor& values) { return sum_of_squares_by(kernels, values); });
}

}  // namespace sluice::models
