#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <c10/util/intrusive_ptr.h>

#include <cstdint>
#include <span>
#include <vector>

#include "models/config/config.h"
#include "models/rotary.h"

namespace sluice::models {

/// Which tokens belong together and where they stand: shared by all layers of one forward pass and kept for its backward.
/// Immutable. A CustomClassHolder so that autograd can hold it.
struct RaggedLayout : torch::CustomClassHolder {
  /// sample_offsets [S+1], not decreasing, from 0.
  RaggedLayout(const ModelConfig& config, std::span<const int64_t> sample_offsets);

  /// Of sample s: its own where the angles depend on its length, else one that many samples share.
  const RotaryTable& rotary(int64_t sample) const { return tables_[table_of_[static_cast<size_t>(sample)]]; }

  std::vector<int64_t> offsets;
  int64_t heads, kv_heads, head_dim;
  double score_scale, softcap;
  int64_t longest;  // tokens of the longest sample

 private:
  std::vector<RotaryTable> tables_;
  std::vector<size_t> table_of_;  // [S]
};

/// Causal attention with rotary positions inside each sample, scores scaled and capped as the layout's config says. CPU, float32.
///
/// query      [T,Nq*D]  before rotation
/// key, value [T,Nk*D]
/// window     tokens that a token sees, itself included; 0: all before it
/// returns    [T,Nq*D]  differentiable in query, key and value
///
/// Runs over (sample, key/value head) pairs in parallel; the result is the same for any number of threads. Keeps only the
/// log-sum-exp of each query for the backward. Throws InternalError on a shape mismatch.
at::Tensor ragged_attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                            const c10::intrusive_ptr<RaggedLayout>& layout, int64_t window = 0);

}  // namespace sluice::models
