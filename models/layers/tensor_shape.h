#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <c10/core/ScalarType.h>

#include <array>
#include <cstdint>
#include <vector>

#include "models/config/precision.h"
#include "models/layers/operand.h"

namespace sluice::models {

/// A tensor that a pass allocates, rows by columns. Who declares its tensors as shapes allocates them and counts their bytes from
/// one list.
struct TensorShape {
  int64_t rows = 0, columns = 0;
  at::ScalarType type = at::kFloat;

  int64_t bytes() const { return rows * columns * static_cast<int64_t>(c10::elementSize(type)); }
};

using TensorShapes = std::vector<TensorShape>;

inline TensorShape operand_shape(Precision precision, int64_t rows, int64_t columns) {
  return {rows, columns, operand_type(precision)};
}

inline at::Tensor allocated(const TensorShape& shape) { return at::empty({shape.rows, shape.columns}, shape.type); }

inline std::vector<at::Tensor> allocated(const TensorShapes& shapes) {
  std::vector<at::Tensor> tensors;
  for (const TensorShape& shape : shapes) tensors.push_back(allocated(shape));
  return tensors;
}

inline int64_t bytes_of(const TensorShapes& shapes) {
  int64_t bytes = 0;
  for (const TensorShape& shape : shapes) bytes += shape.bytes();
  return bytes;
}

}  // namespace sluice::models
