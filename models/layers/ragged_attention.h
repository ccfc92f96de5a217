#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

#include "models/config/config.h"
#include "models/config/precision.h"
#include "models/kernels/rotary.h"
#include "models/layers/segment.h"

namespace sluice::models {

/// Which tokens belong together and where they stand: shared by all layers of one forward pass and kept for its backward.
/// Immutable; neither copied nor moved.
struct RaggedLayout {
  /// sample_offsets [S+1], not decreasing, from 0. `part`: of these tokens, what this rank computes.
  RaggedLayout(const ModelConfig& config, std::span<const int64_t> sample_offsets, const Segment& part);
  RaggedLayout(const ModelConfig& config, std::span<const int64_t> sample_offsets);
  RaggedLayout(const RaggedLayout&) = delete;
  RaggedLayout& operator=(const RaggedLayout&) = delete;

  /// Of sample s in the layers of config.rope_at(rope): its own where the angles depend on its length, else one that many samples
  /// share.
  const RotaryTable& rotary(int64_t sample, int64_t rope = 0) const {
    const Ropes& of = ropes_[static_cast<size_t>(rope)];
    return of.tables[of.table_of[static_cast<size_t>(sample)]];
  }

  /// How the heads of a row are rotated in the layers of config.rope_at(rope); nothing for kNoRope.
  Rotary rotary_of_row(int64_t row, int64_t rope) const {
    return rope == kNoRope ? Rotary{} : ropes_[static_cast<size_t>(rope)].of_rows[static_cast<size_t>(row)];
  }

  int64_t tokens() const { return offsets.back(); }
  int64_t rows() const { return segment.size(); }
  TokenRange block() const { return segment.block_of(segment.block()); }  // what attention has here

  std::vector<int64_t> offsets;
  Segment segment;
  std::vector<int64_t> row_offsets;  // [S+1] where the rows of each sample begin in the segment
  int64_t heads, kv_heads;           // that attention has here
  int64_t head_dim;
  double score_scale, softcap;
  int64_t longest;                 // tokens of the longest sample
  std::vector<int64_t> positions;  // [n] of each row in its sample

 private:
  struct Ropes {
    std::vector<RotaryTable> tables;
    std::vector<size_t> table_of;  // [S]
    std::vector<Rotary> of_rows;   // [n]
  };
  Ropes ropes_of(const ModelConfig& config, int64_t which) const;

  std::vector<Ropes> ropes_;  // one for each rope_at() of the config
};

/// What the tables of angles of a layout take: of each rope_at() one for all samples, but for those whose angles depend on their
/// length.
int64_t rotary_bytes(const ModelConfig& config, int64_t tokens, int64_t longest_sample);

/// What attention multiplies: operands (operand.h), rows side by side. B queries, as many keys or others.
struct AttentionOperands {
  at::Tensor query;       // [B,Nq*D], rotated
  at::Tensor key, value;  // [B,Nk*D], keys rotated
  int64_t window = 0;     // tokens that a token sees, itself included; 0: all before it
  int64_t rope = 0;       // by which queries and keys were rotated: a number for rope_at(), or kNoRope
};

struct Attended {
  at::Tensor output;       // [B,Nq*D], an operand
  at::Tensor log_sum_exp;  // [B,Nq], float32: all that is kept of the scores
};

/// Queries or keys of the rows, x[n,N*D] in float32, rotated by the positions of their tokens: an operand. Rows of x may be
/// apart.
at::Tensor rotated(const at::Tensor& x, const RaggedLayout& layout, Precision precision, int64_t rope = 0);

/// Causal attention inside each sample, scores scaled and capped as the layout's config says, of these queries over these keys:
/// both the same tokens of the pass, or keys before the queries, all of one sample, of which each query sees one at least. Runs
/// over (sample, key/value head) pairs in parallel: the time is that of the samples, however they are packed, and the result the
/// same for any number of threads. Throws InternalError on a shape mismatch.
Attended ragged_attention(const AttentionOperands& in, const RaggedLayout& layout, TokenRange queries, TokenRange keys);

/// From the gradient of the output, an operand, to those of queries and keys before they were rotated and of values. `gradients`
/// may be `in`, whose place they take then. What these keys add, where `result` is of others, too.
void ragged_attention_backward(const AttentionOperands& in, const Attended& result, const at::Tensor& grad_output,
                               const RaggedLayout& layout, TokenRange queries, TokenRange keys,
                               const AttentionOperands& gradients);

}  // namespace sluice::models
