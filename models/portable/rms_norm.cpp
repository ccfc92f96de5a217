#include "models/portable/rms_norm.h"

#include <ATen/ops/rms_norm.h>
#include <torch/csrc/autograd/custom_function.h>

#include "models/cuda/rms_norm.h"
#include "models/portable/abilities.h"

namespace sluice::models::portable {
namespace {

class RmsNorm : public torch::autograd::Function<RmsNorm> {
 public:
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x, const at::Tensor& weight, double eps,
                            bool from_one, at::ScalarType dtype) {
    const RmsNormed normed = own_rms_norm(x, weight, eps, from_one, dtype);
    context->save_for_backward({x, weight, normed.inverses});
    context->saved_data["from_one"] = from_one;
    return normed.out;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& gradients) {
    const auto saved = context->get_saved_variables();
    const bool wants_x = context->needs_input_grad(0), wants_weight = context->needs_input_grad(1);
    const RmsNormGradients of = own_rms_norm_backward(gradients[0], saved[0], saved[1], saved[2],
                                                      context->saved_data["from_one"].toBool(), wants_x, wants_weight);
    torch::autograd::variable_list result(5);
    if (wants_x) result[0] = of.of_x;
    if (wants_weight) result[1] = of.of_weight;
    return result;
  }
};

}  // namespace

at::Tensor rms_normalised(const at::Tensor& x, const at::Tensor& weight, double eps, bool from_one, at::ScalarType dtype) {
  const bool wide = x.scalar_type() == at::kFloat && weight.scalar_type() == at::kFloat;
  if (wide && has_own_operator(x.device(), "sluice::rms_norm")) return RmsNorm::apply(x, weight, eps, from_one, dtype);
  return at::rms_norm(x, {x.size(-1)}, from_one ? weight.add(1.0) : weight, eps).to(dtype);
}

}  // namespace sluice::models::portable
