#include "models/layers/adapter_products.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>

#include "models/kernels/quantised_rows.h"
#include "models/layers/gradient.h"
#include "models/layers/matrix_products.h"
#include "models/layers/tensor_shape.h"

namespace sluice::models {
namespace {

constexpr int64_t kMergedNumbers = 1 << 22;  // of a matrix that is merged: 16 MB

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
  if (is_quantised(weight)) return merged_matrix(dequantised(weight), adapter);
  if (!adapter.defined()) return weight.detach();
  const at::NoGradGuard no_gradient;
  return layer_output(adapter.b.mul(adapter.scale), adapter.a.t().contiguous(), {}, weight);
}

void for_each_merged_rows(const at::Tensor& weight, const Adapter& adapter,
                          const std::function<void(int64_t first, const at::Tensor& rows)>& visit) {
  if (weight.dim() < 2) return visit(0, weight.detach());
  const int64_t rows = weight.size(0), width = std::max<int64_t>(1, weight.numel() / std::max<int64_t>(1, rows));
  const int64_t at_a_time = std::max<int64_t>(1, kMergedNumbers / width / PackedMatrix::kWidth) * PackedMatrix::kWidth;
  for (int64_t first = 0; first < rows; first += at_a_time) {
    const int64_t count = std::min(at_a_time, rows - first);
    Adapter part = adapter;
    if (part.defined()) part.b = part.b.narrow(0, first, count);
    visit(first, merged_matrix(weight.narrow(0, first, count), part));
  }
}

}  // namespace sluice::models
