#pragma once

#include <ATen/core/Tensor.h>

#include "models/config/config.h"
#include "models/layers/weights.h"

namespace sluice::models {

/// Products for a layer that is written in LibTorch's operators: who computes it says where they round. models/portable/ and
/// narrow_forward.cpp each have one.
class TensorMaths {
 public:
  /// x as products read it.
  virtual at::Tensor operand(const at::Tensor& x) const = 0;

  /// x weight^T + bias of operands x[T,K], and what the adapter adds, if whoever computes it knows adapters.
  virtual at::Tensor product(const at::Tensor& x, const LinearWeights& layer) const = 0;

  /// activation(gate of x) * (up of x), an operand.
  virtual at::Tensor gated(Activation activation, const at::Tensor& x, const LinearWeights& gate, const LinearWeights& up) const;

 protected:
  ~TensorMaths() = default;
};

at::Tensor activated(Activation activation, const at::Tensor& x);

}  // namespace sluice::models
