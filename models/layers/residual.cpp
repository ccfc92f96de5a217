#include "models/layers/residual.h"

#include <ATen/ops/empty_like.h>

#include "models/layers/operand.h"
#include "models/layers/tensor_shape.h"

namespace sluice::models {

KeptRead read_residual(const LayerPass& pass, const at::Tensor& x, const Norm& norm) {
  KeptRead kept;
  if (pass.shape().reads_normed()) {
    kept.in = empty_operand(pass.precision, x.sizes());
    norm_forward(norm, x, kept.in, kept.norm);
  } else {
    kept.in = to_operand(x, pass.precision);
  }
  return kept;
}

ReadGradient read_gradient(const LayerPass& pass, const at::Tensor& grad) {
  if (!pass.shape().reads_normed()) return {grad, true};
  return {at::empty_like(grad), false};
}

void finish_read_gradient(const LayerPass& pass, const Norm& norm, const KeptRead& kept, const ReadGradient& read,
                          const at::Tensor& grad) {
  if (pass.shape().reads_normed()) norm_backward(norm, kept.norm, read.out, grad, true);
}

at::Tensor add_normed(const at::Tensor& x, const at::Tensor& added, const Norm& norm, KeptNorm& kept) {
  const at::Tensor out = at::empty_like(x);
  norm_forward(norm, added, out, kept);
  return out.add_(x);
}

at::Tensor added_gradient(const LayerPass& pass, const Norm& norm, const KeptNorm& kept, const at::Tensor& grad) {
  if (!pass.shape().adds_normed()) return to_operand(grad, pass.precision);
  const at::Tensor out = empty_operand(pass.precision, grad.sizes());
  norm_backward(norm, kept, grad, out, false);
  return out;
}

namespace {

int64_t operand_bytes(const PassShape& shape) {
  return operand_shape(shape.precision, shape.tokens, shape.config.hidden_size).bytes();
}

int64_t statistics_bytes(const PassShape& shape) { return norm_statistics_bytes(shape.config.norm, shape.tokens); }

}  // namespace

// Read as it is, x is the operand where nothing is to round.
int64_t read_bytes(const PassShape& shape) {
  if (shape.reads_normed()) return operand_bytes(shape) + statistics_bytes(shape);
  return if_there(shape.rounds(), operand_bytes(shape));
}

bool keeps_stream(const PassShape& shape) { return shape.reads_normed() || !shape.rounds(); }

int64_t added_bytes(const PassShape& shape) {
  return if_there(shape.adds_normed(), shape.stream_bytes() + statistics_bytes(shape));
}

int64_t added_gradient_bytes(const PassShape& shape) {
  return if_there(shape.rounds() || shape.adds_normed(), operand_bytes(shape));
}

int64_t read_gradient_bytes(const PassShape& shape) { return if_there(shape.reads_normed(), shape.stream_bytes()); }

}  // namespace sluice::models
