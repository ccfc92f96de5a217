#include "models/forward/activation_bytes.h"

#include <algorithm>

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
  return action_logprobs_bytes(config, pass.precision, rows_of(pass));
}

// At each point where the sum can be largest, as Transformer::hidden_states() and its head come by.
int64_t without_gradient(const PassShape& shape, const PartBytes& head) {
  const int64_t stream = shape.stream_bytes();
  const int64_t final_norm = stream + norm_statistics_bytes(shape.config.norm, shape.tokens);
  return std::max({stream + decoder_layer_bytes(shape).forward, stream + final_norm,
                   stream + shape.tokens * kFloat + head.kept + head.forward});
}

int64_t with_gradient(const PassShape& shape, const PartBytes& head, const ModelPass& pass) {
  const bool recompute = pass.recompute;
  const int64_t stream = shape.stream_bytes();
  const SublayerBytes layer = decoder_layer_bytes(shape);
  const int64_t inputs = shape.config.layers * stream;  // of the layers
  const int64_t below = inputs + if_there(!recompute, shape.config.layers * layer.kept);
  const int64_t final_norm = stream + norm_statistics_bytes(shape.config.norm, shape.tokens);
  const int64_t norm_backward = norm_backward_bytes(shape.config.norm, shape.tokens, shape.config.hidden_size);
  // The last layer's forward, or that of one which is computed again beside the gradient of its result.
  const int64_t forward = recompute ? inputs + stream + layer.keeping : below - layer.kept + layer.keeping;
  const int64_t with_head =
      below + final_norm + stream + head.kept + objective_bytes(pass.tokens) + std::max(head.forward, head.backward);
  const int64_t backward = below + if_there(recompute, layer.kept) + stream + layer.backward;
  const int64_t positions = if_there(shape.config.learned_positions, 2 * shape.tokens * kFloat);
  return positions + std::max({forward, with_head, below + final_norm + 2 * stream + norm_backward, backward});
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
