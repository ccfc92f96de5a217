#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace sluice::models::portable {

/// Rows of logits as weights of a softmax, with a partial total of every kRun weights: who looks for a place along a row skips
/// whole runs.
struct SoftenedRows {
  static constexpr int64_t kRun = 256;

  at::Tensor weights;  // [R,P] float32 e^((logit - top) * scale); zeros from the vocabulary on. P is a multiple of kRun
  at::Tensor totals;   // [R,P/kRun] float64
};

/// logits [R,V], top [R,1] the largest of each row, scale > 0. Allocates 4 bytes a weight, and 8 more while it adds them up.
SoftenedRows softened(const at::Tensor& logits, const at::Tensor& top, double scale);

/// The first ids whose weights, those of lower ids with them, are more than a share `uniform` [R,1] float64 of the row's: [R,1].
/// In a row with a NaN any number.
at::Tensor drawn_from_all(const SoftenedRows& rows, const at::Tensor& uniform);

}  // namespace sluice::models::portable
