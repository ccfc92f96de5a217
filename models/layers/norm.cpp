#include "models/layers/norm.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "models/kernels/parallel.h"
#include "models/kernels/training_kernels.h"
#include "models/layers/gradient.h"
#include "models/layers/operand.h"
#include "models/layers/tensor_shape.h"

namespace sluice::models {
namespace {

// Gradients of weights are summed within blocks of rows, then over the blocks in order: threads cannot change the rounding. A
// block of short rows, the heads of queries, has more of them.
int64_t block_rows(int64_t size) { return std::max<int64_t>(128, (1 << 15) / size); }
TensorShape sums_shape(int64_t rows, int64_t size) { return {(rows + block_rows(size) - 1) / block_rows(size), size}; }

void add_rows(const at::Tensor& blocks, const at::Tensor& total) {
  if (!total.defined()) return;
  float* out = total.mutable_data_ptr<float>();
  const float* in = blocks.const_data_ptr<float>();
  for (int64_t block = 0; block < blocks.size(0); ++block) {
    for (int64_t i = 0; i < blocks.size(1); ++i) out[i] += in[block * blocks.size(1) + i];
  }
}

// Weights of norms are float32 wherever they are computed with.
at::Tensor wide_weight(const at::Tensor& weight) {
  return weight.defined() ? weight.detach().to(at::kFloat).contiguous() : weight;
}

RowNorm row_norm(const Norm& norm, const at::Tensor& weight, const at::Tensor& bias) {
  return {norm.kind, weight.const_data_ptr<float>(), bias.defined() ? bias.const_data_ptr<float>() : nullptr, norm.eps};
}

NormStatistics statistics_of(const KeptNorm& kept, int64_t row) {
  return {kept.means.defined() ? kept.means.mutable_data_ptr<float>() + row : nullptr,
          kept.inverses.mutable_data_ptr<float>() + row};
}

template <class In, class Grad, class Out>
void differentiate(const Norm& norm, const KeptNorm& kept, const at::Tensor& grad, const at::Tensor& grad_x, bool add) {
  const int64_t count = grad.size(0), size = grad.size(1), block = block_rows(size);
  const TensorShape sums = sums_shape(count, size);
  const at::Tensor weight = wide_weight(norm.weight), bias = wide_weight(norm.bias);
  const at::Tensor weights = at::zeros({sums.rows, size}), biases = at::zeros({sums.rows, bias.defined() ? size : 0});
  float* weight_sums = weights.mutable_data_ptr<float>();
  float* bias_sums = bias.defined() ? biases.mutable_data_ptr<float>() : nullptr;
  const In* x = static_cast<const In*>(kept.x.const_data_ptr());
  const Grad* from = static_cast<const Grad*>(grad.const_data_ptr());
  Out* to = numbers<Out>(grad_x);
  parallel_ranges(sums.rows, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = i * block, rows = std::min(block, count - first), at = first * size;
      models::norm_backward<In, Grad, Out>({row_norm(norm, weight, bias), x + at, rows, size}, statistics_of(kept, first),
                                           from + at, to + at, add,
                                           {weight_sums + i * size, bias_sums ? bias_sums + i * size : nullptr});
    }
  });
  add_rows(weights, gradient_of(norm.weight));
  if (bias.defined()) add_rows(biases, gradient_of(norm.bias));
}

}  // namespace

void norm_forward(const Norm& norm, const at::Tensor& x, const at::Tensor& out, KeptNorm& kept) {
  SLUICE_CHECK(x.scalar_type() == at::kFloat && x.is_contiguous() && out.is_contiguous(), "a norm takes rows side by side");
  const int64_t count = x.size(0), size = x.size(1);
  const at::Tensor weight = wide_weight(norm.weight), bias = wide_weight(norm.bias);
  kept = {.x = x.detach(),
          .means = norm.kind == NormKind::kLayer ? at::empty({count}) : at::Tensor(),
          .inverses = at::empty({count})};
  const float* from = x.const_data_ptr<float>();
  with_number(precision_of(out), [&](auto number) {
    auto* to = numbers<decltype(number)>(out);
    parallel_ranges(count, block_rows(size), [&](int64_t begin, int64_t end) {
      models::norm_forward({row_norm(norm, weight, bias), from + begin * size, end - begin, size}, statistics_of(kept, begin),
                           to + begin * size);
    });
  });
}

void norm_backward(const Norm& norm, const KeptNorm& kept, const at::Tensor& grad, const at::Tensor& grad_x, bool add) {
  SLUICE_CHECK(kept.x.is_contiguous() && grad.is_contiguous() && grad_x.is_contiguous(), "a norm takes rows side by side");
  if (kept.x.scalar_type() == at::kBFloat16) return differentiate<Bfloat16, Bfloat16, Bfloat16>(norm, kept, grad, grad_x, add);
  if (grad_x.scalar_type() == at::kBFloat16) return differentiate<float, float, Bfloat16>(norm, kept, grad, grad_x, add);
  differentiate<float, float, float>(norm, kept, grad, grad_x, add);
}

int64_t norm_statistics_bytes(NormKind kind, int64_t rows) { return TensorShape{rows, kind == NormKind::kLayer ? 2 : 1}.bytes(); }

int64_t norm_backward_bytes(NormKind kind, int64_t rows, int64_t size) {
  return sums_shape(rows, size).bytes() * (kind == NormKind::kLayer ? 2 : 1);
}

at::Tensor normalised(const Norm& norm, const at::Tensor& x_view) {
  const at::Tensor& weight = norm.weight;
  SLUICE_CHECK(x_view.dim() == 2 && weight.dim() == 1 && x_view.size(1) == weight.size(0), "norm takes x [T,H] and weight [H]");
  SLUICE_CHECK(!norm.bias.defined() || (norm.kind == NormKind::kLayer && norm.bias.sizes() == weight.sizes()),
               "only a layer norm has a bias, [H]");
  const at::Tensor x = x_view.detach().contiguous(), out = at::empty_like(x);
  KeptNorm kept;
  norm_forward(norm, x, out, kept);
  if (!records_gradient({x_view, norm.weight, norm.bias})) return out;
  attach_backward({out}, x_view, {norm.weight, norm.bias}, [norm, kept](std::vector<at::Tensor>&& gradients) {
    const at::Tensor grad = owned(std::move(gradients[0]));
    norm_backward(norm, kept, grad, grad, false);
    return grad;
  });
  return out;
}

}  // namespace sluice::models
