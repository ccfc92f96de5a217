#include "models/layers/adapter_products.h"

#include <ATen/core/grad_mode.h>

#include "models/layers/gradient.h"
#include "models/layers/matrix_products.h"
#include "models/layers/tensor_shape.h"

namespace sluice::models {
namespace {

at::Tensor wide(const at::Tensor& x) { return x.to(at::kFloat).contiguous(); }

// Between the factors: of x, and of the gradient of the output. [T,r]
at::Tensor inner(const at::Tensor& x, const Adapter& adapter) {
  return layer_output(wide(x), adapter.a.detach()).mul_(adapter.scale);
}
at::Tensor inner_gradient(const at::Tensor& grad, const Adapter& adapter) {
  return layer_output(wide(grad), adapter.b.detach().t().contiguous()).mul_(adapter.scale);
}

}  // namespace

void add_adapter_output(const at::Tensor& out, const at::Tensor& x, const Adapter& adapter) {
  add_input_gradient(out, inner(x, adapter), adapter.b.detach().t().contiguous());  // the product with b^T, in place
}

void add_adapter_input_gradient(const at::Tensor& out, const at::Tensor& grad, const Adapter& adapter) {
  add_input_gradient(out, inner_gradient(grad, adapter), adapter.a.detach());
}

void add_adapter_gradients(const Adapter& adapter, const at::Tensor& grad, const at::Tensor& x) {
  if (wants_gradient(adapter.b)) add_weight_gradient(gradient_of(adapter.b), wide(grad), inner(x, adapter));
  if (wants_gradient(adapter.a)) add_weight_gradient(gradient_of(adapter.a), inner_gradient(grad, adapter), wide(x));
}

int64_t widened_bytes(Precision precision, int64_t rows, int64_t columns) {
  return precision == Precision::kFloat32 ? 0 : TensorShape{rows, columns}.bytes();
}

at::Tensor merged_matrix(const at::Tensor& weight, const Adapter& adapter) {
  if (!adapter.defined()) return weight.detach();
  const at::NoGradGuard no_gradient;
  return layer_output(adapter.b.mul(adapter.scale), adapter.a.t().contiguous(), {}, weight);
}

}  // namespace sluice::models
