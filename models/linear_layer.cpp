#include "models/linear_layer.h"

#include <ATen/ops/add.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/custom_function.h>

#include "base/error.h"
#include "models/matrix_products.h"

namespace sluice::models {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// The gradients of x weight^T that are asked for: arguments `first` (x) and `first` + 1 (weight) of the function.
variable_list product_gradients(AutogradContext* context, size_t first, const at::Tensor& grad) {
  const auto saved = context->get_saved_variables();
  const at::Tensor &x = saved[0], &weight = saved[1];
  variable_list gradients(2);
  if (context->needs_input_grad(first)) {
    gradients[0] = at::zeros_like(x);
    add_input_gradient(gradients[0], grad, weight);
  }
  if (context->needs_input_grad(first + 1)) {
    gradients[1] = at::zeros_like(weight);
    add_weight_gradient(gradients[1], grad, x);
  }
  return gradients;
}

class LinearLayer : public torch::autograd::Function<LinearLayer> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& weight) {
    context->save_for_backward({x, weight});
    return layer_output(x, weight);
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    return product_gradients(context, 0, gradients[0]);
  }
};

class LinearLayerOnto : public torch::autograd::Function<LinearLayerOnto> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& residual, const at::Tensor& x, const at::Tensor& weight) {
    context->save_for_backward({x, weight});
    return layer_output(x, weight, residual);
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list product = product_gradients(context, 1, gradients[0]);
    return {gradients[0], product[0], product[1]};
  }
};

void check_shapes(const at::Tensor& x, const at::Tensor& weight) {
  SLUICE_CHECK(x.dim() == 2 && weight.dim() == 2 && x.size(1) == weight.size(1), "x [T,K] and weight [N,K] must agree in K");
}

}  // namespace

at::Tensor linear_layer(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  check_shapes(x, weight);
  SLUICE_CHECK(!bias.defined() || bias.numel() == weight.size(0), "the bias has one entry per output");
  const at::Tensor product = LinearLayer::apply(x, weight);
  return bias.defined() ? at::add(product, bias) : product;
}

at::Tensor linear_layer_onto(const at::Tensor& residual, const at::Tensor& x, const at::Tensor& weight) {
  check_shapes(x, weight);
  SLUICE_CHECK(residual.dim() == 2 && residual.size(0) == x.size(0) && residual.size(1) == weight.size(0),
               "residual must be [T,N]");
  return LinearLayerOnto::apply(residual, x, weight);
}

}  // namespace sluice::models
