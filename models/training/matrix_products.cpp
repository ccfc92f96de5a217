#include "models/training/matrix_products.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>

#include <algorithm>

#include "base/error.h"
#include "models/kernels/kernels_linear.h"
#include "models/kernels/weight_gradient.h"

namespace sluice::models {
namespace {

bool runs_here(const at::Tensor& x) { return x.is_cpu() && x.scalar_type() == at::kFloat; }

at::Tensor library_output(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, const at::Tensor& onto) {
  const at::Tensor product = at::mm(x, weight.t());
  if (bias.defined()) product.add_(bias);
  return onto.defined() ? product.add_(onto) : product;
}

}  // namespace

at::Tensor layer_output(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, const at::Tensor& onto) {
  if (!runs_here(x)) return library_output(x, weight, bias, onto);
  const at::Tensor in = x.contiguous(), matrix = weight.contiguous(), shift = bias.defined() ? bias.contiguous() : bias;
  const at::Tensor out =
      onto.defined() ? onto.clone(at::MemoryFormat::Contiguous) : at::empty({x.size(0), weight.size(0)}, x.options());
  linear({.x = in.const_data_ptr<float>(),
          .x_stride = in.size(1),
          .weight = matrix.const_data_ptr<float>(),
          .bias = shift.defined() ? shift.const_data_ptr<float>() : nullptr,
          .out = out.mutable_data_ptr<float>(),
          .out_stride = out.size(1),
          .rows = in.size(0),
          .inputs = in.size(1),
          .outputs = weight.size(0),
          .accumulate = onto.defined()});
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
