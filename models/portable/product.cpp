#include "models/portable/product.h"

#include <ATen/ops/addmm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/mm.h>
#include <torch/csrc/autograd/custom_function.h>

#include "models/portable/abilities.h"

namespace sluice::models::portable {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

class NarrowProduct : public torch::autograd::Function<NarrowProduct> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& weight) {
    context->save_for_backward({x, weight});
    return wide_product(x.to(at::kBFloat16), weight.to(at::kBFloat16).t());
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto saved = context->get_saved_variables();
    const at::Tensor &x = saved[0], &weight = saved[1], grad = gradients[0].to(at::kBFloat16);
    variable_list result(2);
    if (context->needs_input_grad(0)) result[0] = wide_product(grad, weight.to(at::kBFloat16)).to(x.scalar_type());
    if (context->needs_input_grad(1)) result[1] = wide_product(grad.t(), x.to(at::kBFloat16));
    return result;
  }
};

class Rounded : public torch::autograd::Function<Rounded> {
 public:
  static at::Tensor forward(AutogradContext*, const at::Tensor& x) { return x.to(at::kBFloat16).to(at::kFloat); }
  static variable_list backward(AutogradContext*, const variable_list& gradients) { return gradients; }
};

}  // namespace

at::ScalarType dtype_of(Precision precision) { return precision == Precision::kBfloat16 ? at::kBFloat16 : at::kFloat; }

at::Tensor wide_product(const at::Tensor& a, const at::Tensor& b) {
  if (a.scalar_type() != at::kFloat && has_wide_products(a.device())) return at::mm(a, b, at::kFloat);
  return at::mm(a.to(at::kFloat), b.to(at::kFloat));
}

void add_wide_product(const at::Tensor& sum, const at::Tensor& a, const at::Tensor& b) {
  at::Tensor into = sum;
  if (a.scalar_type() == at::kFloat)
    into.addmm_(a, b);
  else if (has_wide_additions(a.device()))
    at::addmm_out(into, into, a, b, at::kFloat);
  else
    into.add_(wide_product(a, b));
}

at::Tensor rounded(const at::Tensor& x, Precision precision) { return precision == Precision::kFloat32 ? x : Rounded::apply(x); }

at::Tensor product(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, Precision precision) {
  if (precision == Precision::kFloat32) return at::linear(x, weight, bias);
  const at::Tensor out = NarrowProduct::apply(x, weight);
  return bias.defined() ? out.add(bias) : out;
}

}  // namespace sluice::models::portable
