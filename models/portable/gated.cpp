#include "models/portable/gated.h"

#include <torch/csrc/autograd/custom_function.h>

#include "models/cuda/gated.h"
#include "models/layers/tensor_maths.h"
#include "models/portable/abilities.h"
#include "models/portable/product.h"

namespace sluice::models::portable {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

Activation activation_of(AutogradContext* context) { return static_cast<Activation>(context->saved_data["activation"].toInt()); }

class Gated : public torch::autograd::Function<Gated> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& gate, const at::Tensor& up, int64_t activation,
                            at::ScalarType dtype) {
    context->save_for_backward({gate, up});
    context->saved_data["activation"] = activation;
    return own_gated(static_cast<Activation>(activation), gate, up, dtype);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto saved = context->get_saved_variables();
    const GatedGradients of = own_gated_backward(activation_of(context), gradients[0], saved[0], saved[1], at::kFloat);
    return {of.of_gate, of.of_up, at::Tensor(), at::Tensor()};
  }
};

class GatedProducts : public torch::autograd::Function<GatedProducts> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& gate_weight,
                            const at::Tensor& up_weight, int64_t activation) {
    const at::Tensor gate = wide_product(x, gate_weight.to(at::kBFloat16).t());
    const at::Tensor up = wide_product(x, up_weight.to(at::kBFloat16).t());
    context->save_for_backward({x, gate_weight, up_weight, gate, up});
    context->saved_data["activation"] = activation;
    return own_gated(static_cast<Activation>(activation), gate, up, at::kBFloat16);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto saved = context->get_saved_variables();
    const at::Tensor &x = saved[0], &gate_weight = saved[1], &up_weight = saved[2];
    const auto [of_gate, of_up] = own_gated_backward(activation_of(context), gradients[0], saved[3], saved[4], at::kBFloat16);
    variable_list result(4);
    if (context->needs_input_grad(0)) {
      const auto through = [](const at::Tensor& grad, const at::Tensor& weight) {
        return wide_product(grad, weight.to(at::kBFloat16)).to(at::kBFloat16);
      };
      result[0] = through(of_up, up_weight).add_(through(of_gate, gate_weight));
    }
    if (context->needs_input_grad(1)) result[1] = wide_product(of_gate.t(), x);
    if (context->needs_input_grad(2)) result[2] = wide_product(of_up.t(), x);
    return result;
  }
};

bool is_plain(const LinearWeights& linear) { return !linear.bias.defined() && !linear.adapter.defined(); }

bool has_gated(at::Device device) { return has_own_operator(device, "sluice::gated"); }

}  // namespace

at::Tensor gated(Activation activation, const at::Tensor& gate, const at::Tensor& up, at::ScalarType dtype) {
  if (has_gated(gate.device())) return Gated::apply(gate, up, static_cast<int64_t>(activation), dtype);
  return activated(activation, gate).mul(up).to(dtype);
}

bool multiplies_gated(const at::Tensor& x, const LinearWeights& gate, const LinearWeights& up) {
  return x.scalar_type() == at::kBFloat16 && is_plain(gate) && is_plain(up) && has_gated(x.device());
}

at::Tensor gated_products(Activation activation, const at::Tensor& x, const at::Tensor& gate, const at::Tensor& up) {
  return GatedProducts::apply(x, gate, up, static_cast<int64_t>(activation));
}

}  // namespace sluice::models::portable
