#pragma once

#include <ATen/core/Tensor.h>

#include "models/layers/layer_pass.h"

namespace sluice::models {

// The two ends of a half of a decoder layer at the residual stream, x[T,H] in float32: what it reads and what it adds, each
// normed or not (NormPlace).

struct KeptRead {
  KeptNorm norm;  // of x; nothing where it is read as it is
  at::Tensor in;  // [T,H], an operand: what was read
};

KeptRead read_residual(const LayerPass& pass, const at::Tensor& x, const Norm& norm);

/// Where the gradient of what was read goes: float32 [T,H].
struct ReadGradient {
  at::Tensor out;
  bool add;  // to what is there, the gradient of x itself
};

/// `grad`: of the residual stream, [T,H] in float32.
ReadGradient read_gradient(const LayerPass& pass, const at::Tensor& grad);

/// Adds to `grad` what comes through the norm, once `read` is complete.
void finish_read_gradient(const LayerPass& pass, const Norm& norm, const KeptRead& kept, const ReadGradient& read,
                          const at::Tensor& grad);

/// x + the norm of `added`, which is float32 and is kept.
at::Tensor add_normed(const at::Tensor& x, const at::Tensor& added, const Norm& norm, KeptNorm& kept);

/// The gradient of what was added, an operand, from that of the sum.
at::Tensor added_gradient(const LayerPass& pass, const Norm& norm, const KeptNorm& kept, const at::Tensor& grad);

// Their bytes. Of read_residual(), which holds on to x itself, too, where keeps_stream(); of added_gradient() and
// read_gradient(); of what add_normed() was given and keeps.
int64_t read_bytes(const PassShape& shape);
bool keeps_stream(const PassShape& shape);
int64_t added_bytes(const PassShape& shape);
int64_t added_gradient_bytes(const PassShape& shape);
int64_t read_gradient_bytes(const PassShape& shape);

}  // namespace sluice::models
