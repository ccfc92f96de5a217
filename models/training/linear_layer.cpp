#include "models/training/linear_layer.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/custom_function.h>

#include "base/error.h"
#include "models/training/matrix_products.h"

namespace sluice::models {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// The gradients of x weight^T + bias that are asked for.
class LinearLayer : public torch::autograd::Function<LinearLayer> {
 public:
  // `bias` and `residual` are empty tensors where there are none: the library does not take undefined ones.
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                            const at::Tensor& residual, bool has_residual) {
    context->save_for_backward({x, weight});
    return layer_output(x, weight, bias.numel() > 0 ? bias : at::Tensor(), has_residual ? residual : at::Tensor());
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const at::Tensor &x = saved[0], &weight = saved[1], &grad = gradients[0];
    variable_list result(5);
    if (context->needs_input_grad(0)) {
      result[0] = at::zeros_like(x);
      add_input_gradient(result[0], grad, weight);
    }
    if (context->needs_input_grad(1)) {
      result[1] = at::zeros_like(weight);
      add_weight_gradient(result[1], grad, x);
    }
    if (context->needs_input_grad(2)) result[2] = grad.sum(0);
    if (context->needs_input_grad(3)) result[3] = grad;
    return result;
  }
};

at::Tensor apply(const at::Tensor& residual, const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  SLUICE_CHECK(x.dim() == 2 && weight.dim() == 2 && x.size(1) == weight.size(1), "x [T,K] and weight [N,K] must agree in K");
  SLUICE_CHECK(!bias.defined() || bias.numel() == weight.size(0), "the bias has one entry per output");
  const at::Tensor none = at::empty({0}, x.options());
  return LinearLayer::apply(x, weight, bias.defined() ? bias : none, residual.defined() ? residual : none, residual.defined());
}

}  // namespace

at::Tensor linear_layer(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  return apply({}, x, weight, bias);
}

at::Tensor linear_layer_onto(const at::Tensor& residual, const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  SLUICE_CHECK(residual.dim() == 2 && residual.size(0) == x.size(0) && residual.size(1) == weight.size(0),
               "residual must be [T,N]");
  return apply(residual, x, weight, bias);
}

}  // namespace sluice::models
