#include "models/cuda/gated.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty_like.h>
#include <torch/library.h>

#include <tuple>

#include "models/devices/streams.h"

namespace sluice::models {
namespace {

using PairOfTensors = std::tuple<at::Tensor, at::Tensor>;

at::Tensor gated_by(const TrainingKernels& kernels, const at::Tensor& gate, const at::Tensor& up, int64_t kind,
                    at::ScalarType dtype) {
  const at::Tensor entry = gate.contiguous(), other = up.contiguous(), out = at::empty_like(entry, dtype);
  check_launched("gated", kernels.gated({.gate = entry.const_data_ptr<float>(),
                                         .up = other.const_data_ptr<float>(),
                                         .out = out.mutable_data_ptr(),
                                         .bfloat16 = dtype == at::kBFloat16,
                                         .kind = static_cast<GateKind>(kind),
                                         .count = entry.numel(),
                                         .device = entry.device().index(),
                                         .stream = current_stream_on(entry.device())}));
  return out;
}

PairOfTensors gated_backward_by(const TrainingKernels& kernels, const at::Tensor& grad, const at::Tensor& gate,
                                const at::Tensor& up, int64_t kind, at::ScalarType dtype) {
  const at::Tensor of_out = grad.contiguous(), entry = gate.contiguous(), other = up.contiguous();
  const at::Tensor of_gate = at::empty_like(entry, dtype), of_up = at::empty_like(other, dtype);
  check_launched("gated_backward", kernels.gated_backward({.grad = of_out.const_data_ptr(),
                                                           .gate = entry.const_data_ptr<float>(),
                                                           .up = other.const_data_ptr<float>(),
                                                           .of_gate = of_gate.mutable_data_ptr(),
                                                           .of_up = of_up.mutable_data_ptr(),
                                                           .bfloat16 = of_out.scalar_type() == at::kBFloat16,
                                                           .narrow_result = dtype == at::kBFloat16,
                                                           .kind = static_cast<GateKind>(kind),
                                                           .count = entry.numel(),
                                                           .device = entry.device().index(),
                                                           .stream = current_stream_on(entry.device())}));
  return {of_gate, of_up};
}

}  // namespace

GateKind gate_kind_of(Activation activation) {
  if (activation == Activation::kSilu) return GateKind::kSilu;
  return activation == Activation::kGeluTanh ? GateKind::kGeluTanh : GateKind::kGelu;
}

at::Tensor own_gated(Activation activation, const at::Tensor& gate, const at::Tensor& up, at::ScalarType dtype) {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("sluice::gated", "")
                             .typed<at::Tensor(const at::Tensor&, const at::Tensor&, int64_t, at::ScalarType)>();
  return op.call(gate, up, static_cast<int64_t>(gate_kind_of(activation)), dtype);
}

GatedGradients own_gated_backward(Activation activation, const at::Tensor& grad, const at::Tensor& gate, const at::Tensor& up,
                                  at::ScalarType dtype) {
  static const auto op =
      c10::Dispatcher::singleton()
          .findSchemaOrThrow("sluice::gated_backward", "")
          .typed<PairOfTensors(const at::Tensor&, const at::Tensor&, const at::Tensor&, int64_t, at::ScalarType)>();
  const auto [of_gate, of_up] = op.call(grad, gate, up, static_cast<int64_t>(gate_kind_of(activation)), dtype);
  return {of_gate, of_up};
}

void offer_gated(torch::Library& library, const TrainingKernels& kernels) {
  library.impl("gated", [&kernels](const at::Tensor& gate, const at::Tensor& up, int64_t kind, at::ScalarType dtype) {
    return gated_by(kernels, gate, up, kind, dtype);
  });
  library.impl("gated_backward",
               [&kernels](const at::Tensor& grad, const at::Tensor& gate, const at::Tensor& up, int64_t kind,
                          at::ScalarType dtype) { return gated_backward_by(kernels, grad, gate, up, kind, dtype); });
}

}  // namespace sluice::models
