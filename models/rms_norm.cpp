#include "models/rms_norm.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>

#include "base/error.h"
#include "models/parallel.h"
#include "models/training_kernels.h"

namespace sluice::models {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// The gradient of the weight is summed within blocks of rows, then over the blocks in order: threads cannot change the rounding.
constexpr int64_t kBlockRows = 128;

at::Tensor sum_of_rows(const at::Tensor& blocks) {
  const at::Tensor total = at::zeros({blocks.size(1)}, blocks.options());
  float* out = total.mutable_data_ptr<float>();
  const float* in = blocks.const_data_ptr<float>();
  for (int64_t block = 0; block < blocks.size(0); ++block) {
    for (int64_t i = 0; i < blocks.size(1); ++i) out[i] += in[block * blocks.size(1) + i];
  }
  return total;
}

class RmsNorm : public torch::autograd::Function<RmsNorm> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x_view, const at::Tensor& weight, double eps) {
    const at::Tensor x = x_view.contiguous();
    const at::Tensor out = at::empty_like(x), inverse = at::empty({x.size(0)}, x.options());
    const int64_t size = x.size(1);
    const float *in = x.const_data_ptr<float>(), *factors = weight.const_data_ptr<float>();
    float *result = out.mutable_data_ptr<float>(), *inverses = inverse.mutable_data_ptr<float>();
    parallel_ranges(x.size(0), kBlockRows, [&](int64_t begin, int64_t end) {
      rms_norm_forward({in + begin * size, factors, end - begin, size}, static_cast<float>(eps), result + begin * size,
                       inverses + begin);
    });
    context->save_for_backward({x, weight, inverse});
    return out;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const at::Tensor &x = saved[0], &weight = saved[1], &inverse = saved[2];
    const at::Tensor grad = gradients[0].contiguous();
    const int64_t rows = x.size(0), size = x.size(1), blocks = (rows + kBlockRows - 1) / kBlockRows;
    const at::Tensor grad_x = at::empty_like(x), partial = at::zeros({blocks, size}, x.options());
    const float *in = x.const_data_ptr<float>(), *factors = weight.const_data_ptr<float>();
    const float *inverses = inverse.const_data_ptr<float>(), *from = grad.const_data_ptr<float>();
    float *to = grad_x.mutable_data_ptr<float>(), *sums = partial.mutable_data_ptr<float>();
    parallel_ranges(blocks, 1, [&](int64_t begin, int64_t end) {
      for (int64_t block = begin; block < end; ++block) {
        const int64_t first = block * kBlockRows, count = std::min(kBlockRows, rows - first);
        rms_norm_backward({in + first * size, factors, count, size}, inverses + first, from + first * size, to + first * size,
                          sums + block * size);
      }
    });
    return {grad_x, sum_of_rows(partial), at::Tensor()};
  }
};

}  // namespace

at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps) {
  SLUICE_CHECK(x.dim() == 2 && weight.dim() == 1 && x.size(1) == weight.size(0), "rms_norm takes x [T,H] and weight [H]");
  SLUICE_CHECK(x.is_cpu() && x.scalar_type() == at::kFloat && weight.scalar_type() == at::kFloat && weight.is_contiguous(),
               "rms_norm takes float32 on the CPU");
  return RmsNorm::apply(x, weight, eps);
}

}  // namespace sluice::models
