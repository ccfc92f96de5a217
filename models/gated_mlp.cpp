#include "models/gated_mlp.h"

#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/custom_function.h>

#include "base/error.h"
#include "models/matrix_products.h"
#include "models/parallel.h"
#include "models/training_kernels.h"

namespace sluice::models {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr int64_t kGrain = 1 << 14;  // elements: some 10 us of work

// silu(gate) * up, all [T,I]
at::Tensor activate(const at::Tensor& gate, const at::Tensor& up) {
  const at::Tensor out = at::empty_like(gate);
  const float *g = gate.const_data_ptr<float>(), *u = up.const_data_ptr<float>();
  float* to = out.mutable_data_ptr<float>();
  parallel_ranges(gate.numel(), kGrain,
                  [&](int64_t begin, int64_t end) { swiglu_forward(g + begin, u + begin, end - begin, to + begin); });
  return out;
}

struct ActivationGradient {
  at::Tensor gate, up;  // [T,I]
};

ActivationGradient activation_gradient(const at::Tensor& gate, const at::Tensor& up, const at::Tensor& grad) {
  const ActivationGradient result{at::empty_like(gate), at::empty_like(up)};
  const float *g = gate.const_data_ptr<float>(), *u = up.const_data_ptr<float>(), *from = grad.const_data_ptr<float>();
  float *to_gate = result.gate.mutable_data_ptr<float>(), *to_up = result.up.mutable_data_ptr<float>();
  parallel_ranges(gate.numel(), kGrain, [&](int64_t begin, int64_t end) {
    swiglu_backward(g + begin, u + begin, from + begin, end - begin, to_gate + begin, to_up + begin);
  });
  return result;
}

at::Tensor weight_gradient(bool wanted, const at::Tensor& weight, const at::Tensor& grad, const at::Tensor& x) {
  if (!wanted) return {};
  const at::Tensor result = at::zeros_like(weight);
  add_weight_gradient(result, grad, x);
  return result;
}

class GatedMlp : public torch::autograd::Function<GatedMlp> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& residual, const at::Tensor& x, const at::Tensor& gate,
                            const at::Tensor& up, const at::Tensor& down) {
    const at::Tensor gated = layer_output(x, gate), raised = layer_output(x, up);  // [T,I]
    context->save_for_backward({x, gate, up, down, gated, raised});
    return layer_output(activate(gated, raised), down, residual);
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const at::Tensor &x = saved[0], &gate = saved[1], &up = saved[2], &down = saved[3], &gated = saved[4], &raised = saved[5];
    const at::Tensor grad = gradients[0].contiguous();  // [T,H]
    const bool wants_down = context->needs_input_grad(4);
    const at::Tensor grad_down = wants_down ? weight_gradient(true, down, grad, activate(gated, raised)) : at::Tensor();

    const at::Tensor grad_inner = at::zeros_like(gated);  // [T,I]
    add_input_gradient(grad_inner, grad, down);
    const ActivationGradient inner = activation_gradient(gated, raised, grad_inner);
    const at::Tensor grad_x = at::zeros_like(x);
    add_input_gradient(grad_x, inner.gate, gate);
    add_input_gradient(grad_x, inner.up, up);
    return {grad, grad_x, weight_gradient(context->needs_input_grad(2), gate, inner.gate, x),
            weight_gradient(context->needs_input_grad(3), up, inner.up, x), grad_down};
  }
};

}  // namespace

at::Tensor gated_mlp(const at::Tensor& residual, const at::Tensor& x, const at::Tensor& gate, const at::Tensor& up,
                     const at::Tensor& down) {
  SLUICE_CHECK(x.dim() == 2 && residual.sizes() == x.sizes() && x.is_cpu() && x.scalar_type() == at::kFloat,
               "x and residual must be [T,H], float32, on the CPU");
  SLUICE_CHECK(
      gate.sizes() == up.sizes() && gate.size(1) == x.size(1) && down.size(0) == x.size(1) && down.size(1) == gate.size(0),
      "gate and up must be [I,H], down [H,I]");
  return GatedMlp::apply(residual, x, gate, up, down);
}

}  // namespace sluice::models
