#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "models/config/config.h"
#include "models/generation/kernels_elementwise.h"
#include "models/generation/kv_cache.h"
#include "models/generation/paged_attention.h"
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

/// The forward pass of generation: new tokens in, logits of what follows them out, over a paged KV cache; no gradient. All that a
/// ModelConfig can say of the maths, for samples of at most config.steady_positions() tokens. Float32 on
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
  struct Projection {
    const at::Tensor& weight;  // [outputs, inputs]
    const at::Tensor& bias;    // [outputs], or undefined
  };

  void embed(const Weights& weights, std::span<const DecodeSequence> sequences);
  void attention(const LayerWeights& layer, int64_t index, KvCache& cache);
  void mlp(const LayerWeights& layer);
  std::span<const float> logits(const Weights& weights, std::span<const DecodeSequence> sequences);
  void reach(int64_t positions);
  RowNorm norm(const at::Tensor& weight, const at::Tensor& bias) const;
  const float* read(const at::Tensor& norm_weight, const at::Tensor& norm_bias);
  void add(const Projection& projection, const float* x, const at::Tensor& norm_weight);
  void project(const Projection& projection, const float* x, float* out, int64_t out_stride, bool accumulate = false) const;

  ModelConfig config_;
  std::optional<RotaryTable> rotary_;     // of the positions that steps have reached; none with learned positions
  int64_t tokens_ = 0;                    // T of the step at hand
  std::vector<PagedSequence> sequences_;  // of the step at hand
  std::vector<float> hidden_;             // [T, H] the residual stream
  std::vector<float> normed_;             // [T, H] of it, or of what is added to it
  std::vector<float> qkv_;                // [T, (Nq + 2 Nk) D]
  std::vector<float> attended_;           // [T, Nq D]
  std::vector<float> gate_up_;            // [T, 2 I]
  std::vector<float> logits_;             // [S, V]
};

}  // namespace sluice::models
