#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include "models/config/precision.h"
#include "models/kernels/bfloat16.h"

namespace sluice::models {

// Operands: tensors of what products take, float32 or bfloat16 by the precision of a model.

inline at::ScalarType operand_type(Precision precision) { return precision == Precision::kFloat32 ? at::kFloat : at::kBFloat16; }

inline Precision precision_of(const at::Tensor& operand) {
  return operand.scalar_type() == at::kFloat ? Precision::kFloat32 : Precision::kBfloat16;
}

inline at::Tensor empty_operand(Precision precision, at::IntArrayRef shape) { return at::empty(shape, operand_type(precision)); }

/// x rounded to the precision; x itself where nothing is to round.
inline at::Tensor to_operand(const at::Tensor& x, Precision precision) { return x.to(operand_type(precision)); }

/// Calls `work(Number{})` with the C++ type of the numbers of an operand.
template <class Work>
void with_number(Precision precision, const Work& work) {
  if (precision == Precision::kFloat32) return work(float{});
  work(Bfloat16{});
}

template <class Number>
Number* numbers(const at::Tensor& operand) {
  return operand.defined() ? static_cast<Number*>(operand.mutable_data_ptr()) : nullptr;
}

}  // namespace sluice::models
