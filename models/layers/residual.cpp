#include "models/layers/residual.h"

#include <ATen/ops/empty_like.h>

#include "models/layers/operand.h"

namespace sluice::models {

KeptRead read_residual(const LayerPass& pass, const at::Tensor& x, const Norm& norm) {
  KeptRead kept;
  if (pass.reads_normed()) {
    kept.in = empty_operand(pass.precision, x.sizes());
    norm_forward(norm, x, kept.in, kept.norm);
  } else {
    kept.in = to_operand(x, pass.precision);
  }
  return kept;
}

ReadGradient read_gradient(const LayerPass& pass, const at::Tensor& grad) {
  if (!pass.reads_normed()) return {grad, true};
  return {at::empty_like(grad), false};
}

void finish_read_gradient(const LayerPass& pass, const Norm& norm, const KeptRead& kept, const ReadGradient& read,
                          const at::Tensor& grad) {
  if (pass.reads_normed()) norm_backward(norm, kept.norm, read.out, grad, true);
}

at::Tensor add_normed(const at::Tensor& x, const at::Tensor& added, const Norm& norm, KeptNorm& kept) {
  const at::Tensor out = at::empty_like(x);
  norm_forward(norm, added, out, kept);
  return out.add_(x);
}

at::Tensor added_gradient(const LayerPass& pass, const Norm& norm, const KeptNorm& kept, const at::Tensor& grad) {
  if (!pass.adds_normed()) return to_operand(grad, pass.precision);
  const at::Tensor out = empty_operand(pass.precision, grad.sizes());
  norm_backward(norm, kept, grad, out, false);
  return out;
}

}  // namespace sluice::models
