#include "models/matrix_products.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>

#include <algorithm>

#include "base/error.h"
#include "models/kernels_linear.h"
#include "models/weight_gradient.h"

namespace sluice::models {
namespace {

// Elements of a weight in a narrower dtype that are widened at once: 4 MB of float32.
constexpr int64_t kWidened = int64_t{1} << 20;

bool runs_here(const at::Tensor& x) { return x.is_cpu() && x.scalar_type() == at::kFloat; }

at::Tensor library_output(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, const at::Tensor& onto) {
  const at::Tensor product = at::mm(x, weight.t());
  if (bias.defined()) product.add_(bias);
  return onto.defined() ? product.add_(onto) : product;
}

// Rows of a weight that are in float32 at a time.
int64_t rows_at_once(const at::Tensor& weight) {
  if (weight.scalar_type() == at::kFloat) return weight.size(0);
  return widened_floats(weight.size(1)) / weight.size(1);
}

}  // namespace

int64_t widened_floats(int64_t inputs) { return std::max<int64_t>(64, kWidened / inputs) * inputs; }

at::Tensor layer_output(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, const at::Tensor& onto) {
  if (!runs_here(x)) return library_output(x, weight, bias, onto);
  const at::Tensor in = x.contiguous(), wide_bias = bias.defined() ? bias.to(at::kFloat).contiguous() : at::Tensor();
  const at::Tensor out =
      onto.defined() ? onto.clone(at::MemoryFormat::Contiguous) : at::empty({x.size(0), weight.size(0)}, x.options());
  const float* shift = wide_bias.defined() ? wide_bias.const_data_ptr<float>() : nullptr;
  const int64_t step = rows_at_once(weight);
  for (int64_t first = 0; first < weight.size(0); first += step) {
    const int64_t count = std::min(step, weight.size(0) - first);
    const at::Tensor matrix = weight.narrow(0, first, count).to(at::kFloat).contiguous();
    linear({.x = in.const_data_ptr<float>(),
            .x_stride = in.size(1),
            .weight = matrix.const_data_ptr<float>(),
            .bias = shift == nullptr ? nullptr : shift + first,
            .out = out.mutable_data_ptr<float>() + first,
            .out_stride = out.size(1),
            .rows = in.size(0),
            .inputs = in.size(1),
            .outputs = count,
            .accumulate = onto.defined()});
  }
  return out;
}

void add_input_gradient(const at::Tensor& out, const at::Tensor& grad, const at::Tensor& weight) {
  if (!runs_here(grad)) {
    out.addmm_(grad, weight);
    return;
  }
  SLUICE_CHECK(out.is_contiguous(), "the gradient must be contiguous");
  const at::Tensor in = grad.contiguous();
  for (int64_t first = 0; first < weight.size(0); first += kTransposedRows) {
    const int64_t count = std::min(kTransposedRows, weight.size(0) - first);
    const at::Tensor transposed = weight.narrow(0, first, count).t().contiguous();  // [K,count]
    linear({.x = in.const_data_ptr<float>() + first,
            .x_stride = in.size(1),
            .weight = transposed.const_data_ptr<float>(),
            .out = out.mutable_data_ptr<float>(),
            .out_stride = out.size(1),
            .rows = in.size(0),
            .inputs = count,
            .outputs = out.size(1),
            .accumulate = true});
  }
}

void add_weight_gradient(const at::Tensor& out, const at::Tensor& grad, const at::Tensor& x) {
  if (!runs_here(grad)) {
    out.addmm_(grad.t(), x);
    return;
  }
  SLUICE_CHECK(out.is_contiguous(), "the gradient must be contiguous");
  const at::Tensor from = grad.contiguous(), in = x.contiguous();
  add_weight_gradient(WeightGradientArguments{.grad = from.const_data_ptr<float>(),
                                              .x = in.const_data_ptr<float>(),
                                              .out = out.mutable_data_ptr<float>(),
                                              .rows = in.size(0),
                                              .outputs = from.size(1),
                                              .inputs = in.size(1)});
}

}  // namespace sluice::models
