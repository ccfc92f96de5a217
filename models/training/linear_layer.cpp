#include "models/training/linear_layer.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/custom_function.h>

#include "base/error.h"
#include "models/training/adapter_products.h"
#include "models/training/matrix_products.h"

namespace sluice::models {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// The gradients of x weight^T + bias and what an adapter adds that are asked for.
class LinearLayer : public torch::autograd::Function<LinearLayer> {
 public:
  // What there is none of is an empty tensor: the library does not take undefined ones.
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                            const at::Tensor& residual, bool has_residual, const at::Tensor& a, const at::Tensor& b,
                            double scale) {
    context->save_for_backward({x, weight, a, b});
    context->saved_data["scale"] = scale;
    const at::Tensor out =
        layer_output(x, weight, bias.numel() > 0 ? bias : at::Tensor(), has_residual ? residual : at::Tensor());
    if (a.numel() > 0) add_adapter_output(out, x, {a, b, scale});
    return out;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const at::Tensor &x = saved[0], &weight = saved[1], &grad = gradients[0];
    const Adapter adapter{saved[2], saved[3], context->saved_data["scale"].toDouble()};
    const auto zeros_if_wanted = [&](size_t argument, const at::Tensor& like) {
      return context->needs_input_grad(argument) ? at::zeros_like(like) : at::Tensor();
    };
    variable_list result(8);
    result[0] = zeros_if_wanted(0, x), result[1] = zeros_if_wanted(1, weight);
    result[5] = zeros_if_wanted(5, adapter.a), result[6] = zeros_if_wanted(6, adapter.b);
    if (result[0].defined()) add_input_gradient(result[0], grad, weight);
    if (result[1].defined()) add_weight_gradient(result[1], grad, x);
    if (context->needs_input_grad(2)) result[2] = grad.sum(0);
    if (context->needs_input_grad(3)) result[3] = grad;
    if (adapter.a.numel() > 0) add_adapter_gradients({result[0], result[5], result[6]}, grad, x, adapter);
    return result;
  }
};

at::Tensor apply(const at::Tensor& residual, const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                 const Adapter& adapter) {
  SLUICE_CHECK(x.dim() == 2 && weight.dim() == 2 && x.size(1) == weight.size(1), "x [T,K] and weight [N,K] must agree in K");
  SLUICE_CHECK(!bias.defined() || bias.numel() == weight.size(0), "the bias has one entry per output");
  SLUICE_CHECK(!adapter.defined() || (adapter.a.size(1) == weight.size(1) && adapter.b.size(0) == weight.size(0)),
               "an adapter is a [r,K] and b [N,r]");
  const at::Tensor none = at::empty({0}, x.options());
  const auto or_none = [&](const at::Tensor& tensor) { return tensor.defined() ? tensor : none; };
  return LinearLayer::apply(x, weight, or_none(bias), or_none(residual), residual.defined(), or_none(adapter.a),
                            or_none(adapter.b), adapter.scale);
}

}  // namespace

at::Tensor linear_layer(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, const Adapter& adapter) {
  return apply({}, x, weight, bias, adapter);
}

at::Tensor linear_layer_onto(const at::Tensor& residual, const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                             const Adapter& adapter) {
  SLUICE_CHECK(residual.dim() == 2 && residual.size(0) == x.size(0) && residual.size(1) == weight.size(0),
               "residual must be [T,N]");
  return apply(residual, x, weight, bias, adapter);
}

}  // namespace sluice::models
