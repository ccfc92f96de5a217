#include "models/portable/paged_attention.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/index_select.h>

namespace sluice::models::portable {

at::Tensor paged_attention(const at::Tensor& query, const at::Tensor& keys, const at::Tensor& values, const at::Tensor& table,
                           const at::Tensor& positions, const AttentionScores& scores) {
  const int64_t sequences = table.size(0), length = table.size(1) * keys.size(1);  // L
  const auto gathered = [&](const at::Tensor& blocks) {                            // [S,Nk,L,D]
    return blocks.index_select(0, table.flatten()).view({sequences, length, blocks.size(2), blocks.size(3)}).transpose(1, 2);
  };
  const at::Tensor back =
      positions.unsqueeze(2).sub(at::arange(length, positions.options()));  // [S,n,L] how far a key lies after
  const at::Tensor seen = scores.window > 0 ? back.ge(0).logical_and(back.lt(scores.window)) : back.ge(0);
  return masked_attention(query.transpose(1, 2), gathered(keys), gathered(values), seen.unsqueeze(1), scores).transpose(1, 2);
}

at::Tensor ragged_paged_attention(const at::Tensor& query, const at::Tensor& keys, const at::Tensor& values,
                                  const PackedSequences& rows, const AttentionScores& scores) {
  const auto read = [&](const at::Tensor& cache) { return cache.flatten(0, 1).index_select(0, rows.slots); };
  return flash_attention(query, read(keys), read(values), rows.new_tokens, rows.tokens, scores);
}

}  // namespace sluice::models::portable
