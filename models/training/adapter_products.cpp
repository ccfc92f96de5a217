#include "models/training/adapter_products.h"

#include "models/training/matrix_products.h"

namespace sluice::models {
namespace {

at::Tensor wide(const at::Tensor& x) { return x.to(at::kFloat).contiguous(); }

}  // namespace

void add_adapter_output(const at::Tensor& out, const at::Tensor& x, const Adapter& adapter) {
  const at::Tensor inner = layer_output(wide(x), adapter.a.detach()).mul_(adapter.scale);  // [T,r]
  add_input_gradient(out, inner, adapter.b.detach().t().contiguous());                     // the product with b^T, in place
}

void add_adapter_gradients(const AdapterGradients& to, const at::Tensor& grad, const at::Tensor& x, const Adapter& adapter) {
  const at::Tensor of_output = wide(grad), input = wide(x);
  if (to.b.defined()) {
    const at::Tensor inner = layer_output(input, adapter.a.detach()).mul_(adapter.scale);  // [T,r]
    add_weight_gradient(to.b, of_output, inner);
  }
  if (!to.a.defined() && !to.x.defined()) return;
  const at::Tensor of_inner = layer_output(of_output, adapter.b.detach().t().contiguous()).mul_(adapter.scale);  // [T,r]
  if (to.a.defined()) add_weight_gradient(to.a, of_inner, input);
  if (to.x.defined()) add_input_gradient(to.x, of_inner, adapter.a.detach());
}

}  // namespace sluice::models
