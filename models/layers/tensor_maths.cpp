#include "models/layers/tensor_maths.h"

#include <ATen/ops/gelu.h>
#include <ATen/ops/silu.h>

namespace sluice::models {

at::Tensor TensorMaths::gated(Activation activation, const at::Tensor& x, const LinearWeights& gate,
                              const LinearWeights& up) const {
  const at::Tensor other = product(x, up);
  return operand(activated(activation, product(x, gate)).mul(other));
}

at::Tensor activated(Activation activation, const at::Tensor& x) {
  if (activation == Activation::kSilu) return at::silu(x);
  return at::gelu(x, activation == Activation::kGelu ? "none" : "tanh");
}

}  // namespace sluice::models
