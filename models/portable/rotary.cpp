#include "models/portable/rotary.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/stack.h>
#include <torch/csrc/autograd/custom_function.h>

#include <vector>

#include "models/cuda/rotary.h"
#include "models/portable/abilities.h"

namespace sluice::models::portable {
namespace {

class OwnRotary : public torch::autograd::Function<OwnRotary> {
 public:
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x, const at::Tensor& angles,
                            at::ScalarType dtype) {
    context->save_for_backward({angles});
    return own_rotary(x, angles, /*back=*/false, dtype);
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& gradients) {
    const at::Tensor angles = context->get_saved_variables()[0];
    return {own_rotary(gradients[0], angles, /*back=*/true, at::kFloat), at::Tensor(), at::Tensor()};
  }
};

}  // namespace

at::Tensor rotated(const at::Tensor& x, const at::Tensor& angles, bool neighbours, at::ScalarType dtype) {
  if (!angles.defined()) return x.to(dtype);
  if (!neighbours && has_own_operator(x.device(), "sluice::rotary")) return OwnRotary::apply(x, angles, dtype);
  const int64_t dims = angles.size(1), half = dims / 2;
  const at::Tensor cosine = angles.narrow(1, 0, half).unsqueeze(1),
                   sine = angles.narrow(1, half, half).unsqueeze(1);  // [T,1,R/2]
  const auto of_pairs = [&](int64_t i) { return neighbours ? x.slice(2, i, dims, 2) : x.narrow(2, i * half, half); };
  const at::Tensor a = of_pairs(0), b = of_pairs(1);  // [T,N,R/2]
  std::vector<at::Tensor> parts{a.mul(cosine).sub(b.mul(sine)), b.mul(cosine).add(a.mul(sine))};
  if (neighbours) parts = {at::stack(parts, 3).flatten(2)};
  if (dims < x.size(2)) parts.push_back(x.narrow(2, dims, x.size(2) - dims));
  return at::cat(parts, 2).to(dtype);
}

}  // namespace sluice::models::portable
