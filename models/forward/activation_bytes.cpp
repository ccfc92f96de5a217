#include "models/forward/activation_bytes.h"

#include <algorithm>
#include <array>
#include <optional>

#include "models/forward/action_logprobs.h"
#include "models/forward/value_head.h"
#include "models/kernels/attention_kernels.h"
#include "models/kernels/outer_product.h"
#include "models/layers/decoder_layer.h"
#include "models/layers/norm.h"
#include "models/layers/ragged_attention.h"

namespace sluice::models {
namespace {

constexpr int64_t kFloat = sizeof(float);

// Gathered out of columns: tokens, predicting, targets, int64; what the pass gives, and up to five columns that a loss reads.
int64_t input_bytes(int64_t tokens) { return tokens * (3 * 8 + 6 * kFloat); }

// What an objective keeps of each action. It is computed of all of them by one rank.
int64_t objective_bytes(int64_t tokens) { return 16 * tokens * kFloat; }

// Of the longest segment.
int64_t rows_of(const ModelPass& pass) { return (pass.tokens + pass.ranks - 1) / pass.ranks; }

PartBytes head_bytes(const ModelConfig& config, const ModelPass& pass) {
  if (pass.value_head) return head_values_bytes(config, rows_of(pass));
  return action_logprobs_bytes(config, pass.precision, rows_of(pass), pass.training);
}

// Of each layer; those that are alike take the same.
class LayerBytes {
 public:
  explicit LayerBytes(const PassShape& shape) : shape_(shape) {}

  const SublayerBytes& of(int64_t layer) {
    std::optional<SublayerBytes>& bytes = by_kind_[shape_.config.is_mixture(layer) ? 1 : 0];
    if (!bytes) bytes = decoder_layer_bytes(shape_.of_layer(layer));
    return *bytes;
  }

 private:
  const PassShape& shape_;
  std::array<std::optional<SublayerBytes>, 2> by_kind_;
};

// With a gradient: once all are computed, their inputs and what the backward keeps of them; the most that is there while one is
// computed, which may be again, beside the gradient of its result; and the most while one is differentiated.
struct AllLayers {
  int64_t below = 0, forward = 0, backward = 0;

  AllLayers(const PassShape& shape, bool recompute) {
    LayerBytes bytes(shape);
    const int64_t stream = shape.stream_bytes();
    for (int64_t i = 0; i < shape.config.layers; ++i) {
      const SublayerBytes& layer = bytes.of(i);
      forward = std::max(forward, below + stream + if_there(recompute, stream) + layer.keeping);
      backward = std::max(backward, below + stream + layer.kept + stream + layer.backward);
      below += stream + if_there(!recompute, layer.kept);
    }
  }
};

// At each point where the sum can be largest, as Transformer::hidden_states() and its head come by.
int64_t without_gradient(const PassShape& shape, const PartBytes& head) {
  LayerBytes bytes(shape);
  int64_t layer = 0;
  for (int64_t i = 0; i < shape.config.layers; ++i) layer = std::max(layer, bytes.of(i).forward);
  const int64_t stream = shape.stream_bytes();
  const int64_t final_norm = stream + norm_statistics_bytes(shape.config.norm, shape.tokens);
  return std::max({stream + layer, stream + final_norm, stream + shape.tokens * kFloat + head.kept + head.forward});
}

int64_t with_gradient(const PassShape& shape, const PartBytes& head, const ModelPass& pass) {
  const int64_t stream = shape.stream_bytes();
  const AllLayers layers(shape, pass.recompute);
  const int64_t final_norm = stream + norm_statistics_bytes(shape.config.norm, shape.tokens);
  const int64_t norm_backward = norm_backward_bytes(shape.config.norm, shape.tokens, shape.config.hidden_size);
  const int64_t with_head =
      layers.below + final_norm + stream + head.kept + objective_bytes(pass.tokens) + std::max(head.forward, head.backward);
  const int64_t positions = if_there(shape.config.learned_positions, 2 * shape.tokens * kFloat);
  return positions +
         std::max({layers.forward, with_head, layers.below + final_norm + 2 * stream + norm_backward, layers.backward});
}

}  // namespace

ActivationBytes activation_bytes(const ModelConfig& config, const ModelPass& pass) {
  const PassShape shape{config, pass.precision, rows_of(pass), pass.ranks, pass.ring, pass.expert_ranks};
  const PartBytes head = head_bytes(config, pass);
  const int64_t attention = attention_scratch_words(pass.precision, pass.longest_sample, config.head_dim) * kFloat;
  const int64_t on_thread = attention + (pass.training ? outer_product_scratch_bytes() : 0);  // the latter is kept
  const int64_t tensors = pass.training ? with_gradient(shape, head, pass) : without_gradient(shape, head);
  return {.tensors = input_bytes(pass.tokens) + tensors,
          .scratch = pass.threads * on_thread + rotary_bytes(config, pass.tokens, pass.longest_sample) +
                     if_there(!pass.value_head, action_logprobs_scratch_bytes(rows_of(pass)))};
}

}  // namespace sluice::models
