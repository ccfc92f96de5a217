#include "models/layers/matrix_products.h"

#include <ATen/ops/empty.h>

#include "base/error.h"
#include "models/kernels/outer_product.h"
#include "models/kernels/parallel.h"
#include "models/kernels/quantised_rows.h"
#include "models/kernels/training_kernels.h"
#include "models/layers/operand.h"

namespace sluice::models {
namespace {

bool rows_side_by_side(const at::Tensor& x) { return x.dim() == 2 && (x.size(1) <= 1 || x.stride(1) == 1); }

at::Tensor wide_copy(const at::Tensor& x) {
  return x.to(at::kFloat, /*non_blocking=*/false, /*copy=*/true, at::MemoryFormat::Contiguous);
}

}  // namespace

PackedMatrix packed(at::ArrayRef<at::Tensor> weights, Precision precision) {
  int64_t outputs = 0;
  for (const at::Tensor& weight : weights) outputs += weight.size(0);
  PackedMatrix matrix(precision, outputs, inputs_of(weights.front()));
  int64_t first = 0;
  for (const at::Tensor& weight : weights) {
    matrix.put(first, weight);
    first += weight.size(0);
  }
  return matrix;
}

PackedMatrix packed_transposed(const at::Tensor& weight, Precision precision) {
  PackedMatrix matrix(precision, inputs_of(weight), weight.size(0));
  if (is_quantised(weight)) {
    matrix.put_transposed_quantised(weight);
  } else if (weight.scalar_type() == at::kBFloat16) {
    matrix.put_transposed(static_cast<const Bfloat16*>(weight.const_data_ptr()), weight.stride(0));
  } else {
    matrix.put_transposed(weight.const_data_ptr<float>(), weight.stride(0));
  }
  return matrix;
}

void multiply(const at::Tensor& x, const PackedMatrix& matrix, const at::Tensor& bias, const at::Tensor& out, bool add) {
  SLUICE_CHECK(rows_side_by_side(x) && rows_side_by_side(out) && x.size(0) == out.size(0), "x and out must have the same rows");
  SLUICE_CHECK(x.size(1) == matrix.inputs() && out.size(1) == matrix.outputs(), "x [T,K], matrix [N,K] and out [T,N] must agree");
  SLUICE_CHECK(precision_of(x) == matrix.precision(), "operands of a product are of one precision");
  const at::Tensor shift = bias.defined() ? bias.to(at::kFloat).contiguous() : bias;
  ProductArguments arguments{.x = x.const_data_ptr(),
                             .x_stride = x.stride(0),
                             .rows = x.size(0),
                             .bias = shift.defined() ? shift.const_data_ptr<float>() : nullptr,
                             .out_stride = out.stride(0),
                             .accumulate = add};
  if (out.scalar_type() == at::kFloat) {
    arguments.out = out.mutable_data_ptr<float>();
  } else {
    arguments.narrow_out = numbers<Bfloat16>(out);
  }
  models::multiply(matrix, arguments);
}

at::Tensor layer_output(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, const at::Tensor& onto) {
  const at::Tensor out = onto.defined() ? wide_copy(onto) : at::empty({x.size(0), weight.size(0)});
  multiply(x.contiguous(), packed(weight.contiguous(), precision_of(x)), bias, out, onto.defined());
  return out;
}

void add_input_gradient(const at::Tensor& out, const at::Tensor& grad, const at::Tensor& weight) {
  multiply(grad, packed_transposed(weight, precision_of(grad)), {}, out, true);
}

void add_weight_gradient(const at::Tensor& out, const at::Tensor& grad, const at::Tensor& x) {
  if (!out.defined()) return;
  SLUICE_CHECK(grad.size(0) == x.size(0) && out.size(0) == grad.size(1) && out.size(1) == x.size(1),
               "grad [T,N], x [T,K] and out [N,K] must agree");
  SLUICE_CHECK(rows_side_by_side(out) && rows_side_by_side(grad) && rows_side_by_side(x), "rows must be side by side");
  SLUICE_CHECK(precision_of(grad) == precision_of(x), "operands of a product are of one precision");
  add_outer_product({.grad = grad.const_data_ptr(),
                     .x = x.const_data_ptr(),
                     .precision = precision_of(x),
                     .out = out.mutable_data_ptr<float>(),
                     .grad_stride = grad.stride(0),
                     .x_stride = x.stride(0),
                     .out_stride = out.stride(0),
                     .rows = x.size(0),
                     .outputs = grad.size(1),
                     .inputs = x.size(1)});
}

void add_bias_gradient(const at::Tensor& out, const at::Tensor& grad) {
  if (!out.defined()) return;
  constexpr int64_t kColumns = 256;  // a thread sums whole columns: in order, whatever their number
  const int64_t columns = grad.size(1);
  with_number(precision_of(grad), [&](auto number) {
    using Number = decltype(number);
    parallel_ranges((columns + kColumns - 1) / kColumns, 1, [&](int64_t begin, int64_t end) {
      const int64_t first = begin * kColumns, last = std::min(end * kColumns, columns);
      add_column_sums(static_cast<const Number*>(grad.const_data_ptr()) + first, grad.stride(0), grad.size(0), last - first,
                      out.mutable_data_ptr<float>() + first);
    });
  });
}

}  // namespace sluice::models
