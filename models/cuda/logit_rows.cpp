#include "models/cuda/logit_rows.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty.h>
#include <torch/library.h>

#include <optional>
#include <tuple>

#include "base/error.h"
#include "models/devices/streams.h"

namespace sluice::models {
namespace {

using MaybeTensor = std::optional<at::Tensor>;
using ThreeTensors = std::tuple<at::Tensor, at::Tensor, at::Tensor>;

LogitScaling scaling_of(double temperature, double softcap) {
  return {.inverse_temperature = static_cast<float>(1 / temperature),
          .softcap = static_cast<float>(softcap),
          .inverse_softcap = softcap == 0 ? 0.0f : static_cast<float>(1 / softcap)};
}

ThreeTensors logit_rows_by(const TrainingKernels& kernels, const at::Tensor& logits, const at::Tensor& targets,
                           double temperature, double softcap, bool with_entropy) {
  const int64_t rows = logits.size(0);
  const at::Tensor in = logits.contiguous(), chosen = targets.contiguous();
  const at::Tensor logprobs = at::empty({rows}, in.options()), log_sums = at::empty({rows}, in.options());
  const at::Tensor entropies = at::empty({with_entropy ? rows : 0}, in.options());
  check_launched("logit_rows", kernels.logit_rows({.logits = in.const_data_ptr<float>(),
                                                   .targets = chosen.const_data_ptr<int64_t>(),
                                                   .logprobs = logprobs.mutable_data_ptr<float>(),
                                                   .log_sums = log_sums.mutable_data_ptr<float>(),
                                                   .entropies = with_entropy ? entropies.mutable_data_ptr<float>() : nullptr,
                                                   .scaling = scaling_of(temperature, softcap),
                                                   .rows = rows,
                                                   .vocabulary = in.size(1),
                                                   .device = in.device().index(),
                                                   .stream = current_stream_on(in.device())}));
  return {logprobs, log_sums, entropies};
}

at::Tensor contiguous_or_none(const MaybeTensor& tensor) {
  return tensor && tensor->defined() ? tensor->contiguous() : at::Tensor();
}

const float* floats_or_null(const at::Tensor& tensor) { return tensor.defined() ? tensor.const_data_ptr<float>() : nullptr; }

void logit_slopes_by(const TrainingKernels& kernels, const at::Tensor& logits, const at::Tensor& targets,
                     const at::Tensor& log_sums, const MaybeTensor& entropies, const MaybeTensor& of_logprobs,
                     const MaybeTensor& of_entropies, double temperature, double softcap, const at::Tensor& slopes) {
  SLUICE_CHECK(logits.is_contiguous() && slopes.is_contiguous() && slopes.sizes() == logits.sizes(),
               "logits and their slopes are contiguous and of one shape");
  const at::Tensor chosen = targets.contiguous(), sums = log_sums.contiguous(), entropy = contiguous_or_none(entropies);
  const at::Tensor grad = contiguous_or_none(of_logprobs), entropy_grad = contiguous_or_none(of_entropies);
  check_launched("logit_slopes", kernels.logit_slopes({.logits = logits.const_data_ptr<float>(),
                                                       .targets = chosen.const_data_ptr<int64_t>(),
                                                       .log_sums = sums.const_data_ptr<float>(),
                                                       .entropies = floats_or_null(entropy),
                                                       .of_logprobs = floats_or_null(grad),
                                                       .of_entropies = floats_or_null(entropy_grad),
                                                       .slopes = slopes.mutable_data_ptr(),
                                                       .bfloat16 = slopes.scalar_type() == at::kBFloat16,
                                                       .scaling = scaling_of(temperature, softcap),
                                                       .rows = logits.size(0),
                                                       .vocabulary = logits.size(1),
                                                       .device = logits.device().index(),
                                                       .stream = current_stream_on(logits.device())}));
}

MaybeTensor if_defined(const at::Tensor& tensor) { return tensor.defined() ? MaybeTensor(tensor) : std::nullopt; }

}  // namespace

LogitRows own_logit_rows(const at::Tensor& logits, const at::Tensor& targets, double temperature, double softcap, bool entropy) {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("sluice::logit_rows", "")
                             .typed<ThreeTensors(const at::Tensor&, const at::Tensor&, double, double, bool)>();
  const auto [logprobs, log_sums, entropies] = op.call(logits, targets, temperature, softcap, entropy);
  return {logprobs, log_sums, entropies};
}

void own_logit_slopes(const at::Tensor& logits, const at::Tensor& targets, const LogitRows& rows, const at::Tensor& of_logprobs,
                      const at::Tensor& of_entropies, double temperature, double softcap, const at::Tensor& slopes) {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("sluice::logit_slopes", "")
                             .typed<void(const at::Tensor&, const at::Tensor&, const at::Tensor&, const MaybeTensor&,
                                         const MaybeTensor&, const MaybeTensor&, double, double, const at::Tensor&)>();
  op.call(logits, targets, rows.log_sums, if_defined(rows.entropies), if_defined(of_logprobs), if_defined(of_entropies),
          temperature, softcap, slopes);
}

void offer_logit_rows(torch::Library& library, const TrainingKernels& kernels) {
  library.impl("logit_rows",
               [&kernels](const at::Tensor& logits, const at::Tensor& targets, double temperature, double softcap, bool entropy) {
                 return logit_rows_by(kernels, logits, targets, temperature, softcap, entropy);
               });
  library.impl(
      "logit_slopes", [&kernels](const at::Tensor& logits, const at::Tensor& targets, const at::Tensor& log_sums,
                                 const MaybeTensor& entropies, const MaybeTensor& of_logprobs, const MaybeTensor& of_entropies,
                                 double temperature, double softcap, const at::Tensor& slopes) {
        logit_slopes_by(kernels, logits, targets, log_sums, entropies, of_logprobs, of_entropies, temperature, softcap, slopes);
      });
}

}  // namespace sluice::models
