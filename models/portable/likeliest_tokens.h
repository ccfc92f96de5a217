#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "models/layers/sampling.h"
#include "models/portable/softened_rows.h"

namespace sluice::models::portable {

/// The ids of the `count` largest of each row, the largest first, equal ones by id, lowest first: [R,count] int64. All of a row
/// are sorted; fewer are picked out and sorted. `logits` [R,V] float32 without NaN: else any ids of the vocabulary.
at::Tensor likeliest_ids(const at::Tensor& logits, int64_t count);

/// Draws from the likeliest tokens that top_k, top_p and min_p leave, in their order: the last of the fewest whose weights are a
/// share `uniform` [R,1] float64 of theirs: [R,1].
///
/// logits [R,V], top [R,1] the largest of each row, rows = softened(logits, top, 1 / temperature)
///
/// Allocates some 40 bytes a logit, and what the library needs to sort.
at::Tensor drawn_from_likeliest(const at::Tensor& logits, const at::Tensor& top, const SoftenedRows& rows,
                                const at::Tensor& uniform, const SamplingOptions& options);

}  // namespace sluice::models::portable
