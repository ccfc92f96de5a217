#include "models/training/norm.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>

#include "base/error.h"
#include "models/kernels/parallel.h"
#include "models/kernels/training_kernels.h"

namespace sluice::models {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Gradients of weights are summed within blocks of rows, then over the blocks in order: threads cannot change the rounding. A
// block of short rows, the heads of queries, has more of them.
int64_t block_rows(int64_t size) { return std::max<int64_t>(128, (1 << 15) / size); }

at::Tensor sum_of_rows(const at::Tensor& blocks) {
  const at::Tensor total = at::zeros({blocks.size(1)}, blocks.options());
  float* out = total.mutable_data_ptr<float>();
  const float* in = blocks.const_data_ptr<float>();
  for (int64_t block = 0; block < blocks.size(0); ++block) {
    for (int64_t i = 0; i < blocks.size(1); ++i) out[i] += in[block * blocks.size(1) + i];
  }
  return total;
}

const float* data_or_null(const at::Tensor& x) { return x.numel() > 0 ? x.const_data_ptr<float>() : nullptr; }

// The arguments of the kernels for rows [begin, end).
struct Rows {
  NormRows in;
  NormStatistics statistics;
};

struct NormArguments {
  NormKind kind;
  double eps;
  at::Tensor x, weight, bias;  // [T,H], [H], [H] or empty
  at::Tensor means, inverses;  // [T], means [0] where nothing is subtracted

  Rows rows(int64_t begin, int64_t end) const {
    const int64_t size = x.size(1);
    const RowNorm norm{kind, weight.const_data_ptr<float>(), data_or_null(bias), eps};
    float* mean = means.numel() > 0 ? means.mutable_data_ptr<float>() + begin : nullptr;
    return {{norm, x.const_data_ptr<float>() + begin * size, end - begin, size},
            {mean, inverses.mutable_data_ptr<float>() + begin}};
  }
};

// `bias` is an empty tensor where there is none: the library does not take an undefined one.
class Norm : public torch::autograd::Function<Norm> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x_view, const at::Tensor& weight, const at::Tensor& bias,
                            int64_t kind_number, double eps) {
    const auto kind = static_cast<NormKind>(kind_number);
    const at::Tensor x = x_view.contiguous();
    const int64_t count = x.size(0), size = x.size(1);
    const NormArguments arguments{kind,
                                  eps,
                                  x,
                                  weight,
                                  bias,
                                  at::empty({kind == NormKind::kLayer ? count : 0}, x.options()),
                                  at::empty({count}, x.options())};
    const at::Tensor out = at::empty_like(x);
    float* result = out.mutable_data_ptr<float>();
    parallel_ranges(count, block_rows(size), [&](int64_t begin, int64_t end) {
      const Rows rows = arguments.rows(begin, end);
      norm_forward(rows.in, rows.statistics, result + begin * size);
    });
    context->save_for_backward({x, weight, bias, arguments.means, arguments.inverses});
    context->saved_data["kind"] = kind_number;
    context->saved_data["eps"] = eps;
    return out;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const NormArguments arguments{static_cast<NormKind>(context->saved_data["kind"].toInt()),
                                  context->saved_data["eps"].toDouble(),
                                  saved[0],
                                  saved[1],
                                  saved[2],
                                  saved[3],
                                  saved[4]};
    const at::Tensor grad = gradients[0].contiguous(), grad_x = at::empty_like(saved[0]);
    const int64_t count = grad.size(0), size = grad.size(1), block = block_rows(size), blocks = (count + block - 1) / block;
    const bool has_bias = saved[2].numel() > 0;
    const at::Tensor weights = at::zeros({blocks, size}, grad.options());
    const at::Tensor biases = at::zeros({blocks, has_bias ? size : 0}, grad.options());
    const float* from = grad.const_data_ptr<float>();
    float *to = grad_x.mutable_data_ptr<float>(), *weight_sums = weights.mutable_data_ptr<float>();
    float* bias_sums = has_bias ? biases.mutable_data_ptr<float>() : nullptr;
    parallel_ranges(blocks, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t first = i * block;
        const Rows rows = arguments.rows(first, std::min(first + block, count));
        norm_backward(rows.in, rows.statistics, from + first * size, to + first * size,
                      {weight_sums + i * size, has_bias ? bias_sums + i * size : nullptr});
      }
    });
    return {grad_x, sum_of_rows(weights), has_bias ? sum_of_rows(biases) : at::Tensor(), at::Tensor(), at::Tensor()};
  }
};

}  // namespace

at::Tensor norm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, NormKind kind, double eps) {
  SLUICE_CHECK(x.dim() == 2 && weight.dim() == 1 && x.size(1) == weight.size(0), "norm takes x [T,H] and weight [H]");
  SLUICE_CHECK(!bias.defined() || (kind == NormKind::kLayer && bias.sizes() == weight.sizes()),
               "only a layer norm has a bias, [H]");
  SLUICE_CHECK(x.is_cpu() && x.scalar_type() == at::kFloat && weight.is_contiguous(), "norm takes float32 on the CPU");
  const at::Tensor shift = bias.defined() ? bias : at::empty({0}, x.options());
  return Norm::apply(x, weight, shift, static_cast<int64_t>(kind), eps);
}

}  // namespace sluice::models
