#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/config.h"
#include "models/kv_cache.h"
#include "models/paged_attention.h"
#include "models/rotary.h"
#include "models/weights.h"

namespace sluice::models {

/// The new tokens of one sequence in a step and where it keeps its keys and values.
struct DecodeSequence {
  std::span<const int64_t> tokens;  // >= 1, at the positions [cached, cached + tokens.size())
  int64_t cached = 0;
  std::span<const int32_t> blocks;  // of the cache given to step(), with room for cached + tokens.size() tokens
  bool wants_logits = true;         // false for a chunk of a prompt that is not its last
};

/// The forward pass of generation: new tokens in, logits of what follows them out, over a paged KV cache; no gradient. Float32 on
/// the CPU, on the caller's thread and ATen's threads. Owns only scratch memory, which grows to the largest step. Not
/// thread-safe.
///
/// Nothing of the weights is kept between steps. A sequence must see the same weights from its first step to its last: keys and
/// values in the cache belong to the weights that wrote them.
class Decoder {
 public:
  explicit Decoder(const ModelConfig& config);

  /// Writes keys and values of the new tokens into their blocks and returns the logits that follow the last token of each
  /// sequence with wants_logits, [S,V] in order; valid until the next step. A row is bit-identical whatever else is in the step,
  /// however its prompt was cut into steps, and for any number of threads.
  std::span<const float> step(const Weights& weights, KvCache& cache, std::span<const DecodeSequence> sequences);

 private:
  void embed(const Weights& weights, std::span<const DecodeSequence> sequences);
  void attention(const LayerWeights& layer, int64_t index, KvCache& cache);
  void mlp(const LayerWeights& layer);
  std::span<const float> logits(const Weights& weights, std::span<const DecodeSequence> sequences);
  const float* joined_bias(const LayerWeights& layer);
  void project(const at::Tensor& weight, const float* x, float* out, int64_t out_stride, bool accumulate = false) const;

  ModelConfig config_;
  RotaryTable rotary_;
  int64_t tokens_ = 0;                    // T of the step at hand
  std::vector<PagedSequence> sequences_;  // of the step at hand
  std::vector<float> hidden_;             // [T, H] the residual stream
  std::vector<float> normed_;             // [T, H]
  std::vector<float> qkv_;                // [T, (Nq + 2 Nk) D]
  std::vector<float> attended_;           // [T, Nq D]
  std::vector<float> gate_up_;            // [T, 2 I]
  std::vector<float> logits_;             // [S, V]
  std::vector<float> bias_;               // [(Nq + 2 Nk) D]
};

}  // namespace sluice::models
