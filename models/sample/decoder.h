#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "models/config/config.h"
#include "models/kernels/rotary.h"
#include "models/kernels/row_kernels.h"
#include "models/layers/column_share.h"
#include "models/layers/decode_sequence.h"
#include "models/layers/feed_forward/feed_forward.h"
#include "models/memory/grown_buffer.h"
#include "models/sample/head_kernels.h"
#include "models/sample/kv_cache.h"
#include "models/sample/packed_weights.h"
#include "models/sample/paged_attention.h"
#include "models/sample/route_blocks.h"

namespace sluice::models {

/// The forward pass of generation: new tokens in, logits of what follows them out, over a paged KV cache; no gradient. All that a
/// ModelConfig can say of the maths, for samples of at most config.steady_positions() tokens. On the CPU, on the caller's thread
/// and ATen's threads.
///
/// Computes in the precision of the weights, which is that of the cache. In bfloat16 the rows that products read and what the
/// cache holds are rounded once, queries too; the residual stream, norms, scores, softmax and all sums are float32.
///
/// Owns only scratch memory: a step that is not larger than an earlier one, or than what reserve() was told, allocates nothing,
/// unless it exchanges columns. Not thread-safe.
///
/// Several ranks make a step together: each calls it with its part of the weights and of the cache, and the same sequences. Waits
/// and ends as their exchange does.
///
/// Nothing of the weights is kept between steps. A sequence must see the same weights from its first step to its last: keys and
/// values in the cache belong to the weights that wrote them.
class Decoder {
 public:
  explicit Decoder(const ModelConfig& config, const ColumnShare& share = {});

  /// Makes room for samples of so many positions; at most config.steady_positions() are taken.
  void reserve(int64_t positions) { grow_rotary_tables(config_, std::min(positions, config_.steady_positions()), rotary_); }

  /// Of a rank that has experts alone, without columns and without a cache: its part of the step.
  void assist(const PackedWeights& weights, std::span<const DecodeSequence> sequences);

  /// Writes keys and values of the new tokens into their blocks and returns the logits that follow the last token of each
  /// sequence with wants_logits, [S,V] in order; valid until the next step. Nothing where others lead the step. A row is
  /// bit-identical whatever else is in the step, however its prompt was cut into steps, and for any number of threads.
  ///
  /// routes: of mixtures: becomes those of the new tokens, in their blocks; not of the last layer where no logits are wanted.
  /// Null: they are not wanted.
  std::span<const float> step(const PackedWeights& weights, KvCache& cache, std::span<const DecodeSequence> sequences,
                              RouteBlocks* routes = nullptr);

 private:
  void begin(const PackedWeights& weights, const KvCache& cache, std::span<const DecodeSequence> sequences);
  void embed(const PackedWeights& weights, std::span<const DecodeSequence> sequences);
  void look_up(const PackedWeights& weights, std::span<const DecodeSequence> sequences);
  void normalize_all_heads(const at::Tensor& weight, float* own, int64_t columns);
  void project_heads(const PackedLayer& layer, int64_t index, const KvCache& cache);
  void attend(const PackedLayer& layer, int64_t index, const KvCache& cache);
  void feed_forward(const PackedLayer& layer, int64_t index, RouteBlocks* routes);
  void keep_last_tokens(std::span<const DecodeSequence> sequences);
  std::span<const float> logits(const PackedWeights& weights);

  bool narrow() const { return precision_ == Precision::kBfloat16; }
  OperandRows operand(GrownBuffer<float>& wide, GrownBuffer<Bfloat16>& narrow, int64_t size);
  const void* read(const at::Tensor& norm_weight, const at::Tensor& norm_bias);
  template <class Compute>
  void add(const at::Tensor& norm_weight, const Compute& compute);
  RowNorm norm(const at::Tensor& weight, const at::Tensor& bias) const;
  int64_t queries_size() const { return heads_.heads * heads_.head_dim; }
  int64_t heads_size() const { return (heads_.heads + 2 * heads_.kv_heads) * heads_.head_dim; }
  int64_t query_stride(const KvCache& cache) const { return narrow() ? heads_.heads * cache.key_dim() : heads_size(); }

  ModelConfig config_;
  const ColumnShare share_;
  const ModelConfig heads_;          // that are here
  std::vector<RotaryTable> rotary_;  // for each rope_at() of the config, of the positions that steps have reached

  // Of the step at hand.
  Precision precision_ = Precision::kFloat32;
  int64_t tokens_ = 0;  // T; at the end of the last layer only those whose logits are wanted
  std::vector<PagedSequence> sequences_;
  std::vector<TokenPlace> places_;  // [T], like the rows
  PagedAttention attention_;

  // Rows that products read are float or Bfloat16; one of each pair is in use.
  GrownBuffer<float> hidden_;  // [T, H] the residual stream
  GrownBuffer<float> normed_;  // [T, H]
  GrownBuffer<Bfloat16> narrow_normed_;
  GrownBuffer<float> added_;              // [T, H] what is added to it, where that is normed
  GrownBuffer<float> qkv_;                // [T, (Nq + 2 Nk) D]
  GrownBuffer<float> all_projected_;      // [T, N D] of all ranks, where a norm takes them together
  GrownBuffer<Bfloat16> narrow_queries_;  // [T, Nq K]
  GrownBuffer<float> attended_;           // [T, Nq D]
  GrownBuffer<Bfloat16> narrow_attended_;
  GrownBuffer<float> all_attended_;  // [T, N D] of all ranks, where there are several
  GrownBuffer<Bfloat16> all_narrow_attended_;
  std::vector<int> embedded_at_;   // [T] likewise: which rank has the token's embedding
  StepScratch scratch_;            // of the feed-forward network
  GrownBuffer<int32_t> chosen_;    // [T,K] experts, where somebody asks
  GrownBuffer<float> logits_;      // [S, V]
  GrownBuffer<float> own_logits_;  // of a part of the vocabulary
};

}  // namespace sluice::models
