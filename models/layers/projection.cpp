#include "models/layers/projection.h"

#include <ATen/ops/empty.h>

#include "models/layers/adapter_products.h"
#include "models/layers/gradient.h"
#include "models/layers/matrix_products.h"

namespace sluice::models {
namespace {

// Calls `compute(wide)`: where float32 sums for `out` are made, `out` itself or what it is rounded of.
template <class Compute>
void in_float32(const at::Tensor& out, const Compute& compute) {
  if (out.scalar_type() == at::kFloat) return compute(out);
  const at::Tensor wide = at::empty(out.sizes());
  compute(wide);
  out.copy_(wide);
}

}  // namespace

void project(const LinearWeights& layer, const PackedMatrix& matrix, const at::Tensor& x, const at::Tensor& out, bool add) {
  const at::Tensor bias = layer.bias.defined() ? layer.bias.detach() : layer.bias;
  if (!layer.adapter.defined()) return multiply(x, matrix, bias, out, add);
  in_float32(out, [&](const at::Tensor& wide) {
    multiply(x, matrix, bias, wide, add);
    add_adapter_output(wide, x, layer.adapter);
  });
}

void project_back(const LinearWeights& layer, const PackedMatrix& transposed, const at::Tensor& grad, const at::Tensor& out,
                  bool add) {
  if (!layer.adapter.defined()) return multiply(grad, transposed, {}, out, add);
  in_float32(out, [&](const at::Tensor& wide) {
    multiply(grad, transposed, {}, wide, add);
    add_adapter_input_gradient(wide, grad, layer.adapter);
  });
}

void add_gradients(const LinearWeights& layer, const at::Tensor& grad, const at::Tensor& x) {
  add_weight_gradient(gradient_of(layer.weight), grad, x);
  add_bias_gradient(gradient_of(layer.bias), grad);
  if (layer.adapter.defined()) add_adapter_gradients(layer.adapter, grad, x);
}

}  // namespace sluice::models
