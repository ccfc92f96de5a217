#include "models/forward/activation_bytes.h"

#include <algorithm>

#include "models/forward/action_logprobs.h"
#include "models/kernels/attention_kernels.h"
#include "models/kernels/outer_product.h"
#include "models/kernels/packed_matrix.h"
#include "models/kernels/softmax_kernels.h"
#include "models/layers/mlp_half.h"

namespace sluice::models {
namespace {

constexpr int64_t kFloat = 4;

int64_t if_there(bool there, int64_t bytes) { return there ? bytes : 0; }

/// Bytes of tensors at each point where the sum can be largest. T tokens; H, I, V of the config; Q and K: all query and all key
/// heads; A = T actions. A number of an operand has `number` bytes.
class Peak {
 public:
  Peak(const ModelConfig& config, const ModelPass& pass)
      : T(pass.tokens),
        H(config.hidden_size),
        I(config.intermediate_size),
        V(config.vocab_size),
        Q(config.heads * config.head_dim),
        K(config.kv_heads * config.head_dim),
        number(bytes_of(pass.precision)),
        rounds(pass.precision != Precision::kFloat32),
        recompute(pass.recompute),
        layers(config.layers),
        heads(config.heads),
        statistics(kFloat * (config.norm == NormKind::kLayer ? 2 : 1)),
        before(config.norm_place != NormPlace::kAfter),
        after(config.norm_place != NormPlace::kBefore),
        gated(config.gated_mlp),
        heads_normed(config.qk_norm != QkNorm::kNone),
        rows_of_heads(config.qk_norm == QkNorm::kHead ? config.heads + config.kv_heads : 2),
        positions(config.learned_positions),
        value_head(pass.value_head) {}

  int64_t without_gradient() const {
    const int64_t attention = T * H * kFloat + attention_forward();
    const int64_t mlp = T * H * kFloat + read_keeps(true) + mlp_forward(false) + if_there(after, T * statistics);
    const int64_t states = 2 * T * H * kFloat + T * statistics;  // all, those that predict actions
    return inputs() + std::max({attention, mlp, states, T * H * kFloat + T * kFloat + head_forward()});
  }

  int64_t training() const {
    const int64_t below = layers * (T * H * kFloat + if_there(!recompute, layer_keeps()));
    const int64_t at_work = if_there(recompute, layer_keeps());  // of the layer whose turn it is
    const int64_t final_norm = T * (H * kFloat + statistics);
    const int64_t forward = if_there(recompute, layer_keeps()) + mlp_forward(true);
    const int64_t states = T * H * (kFloat + if_there(rounds, number));
    const int64_t stream = T * H * kFloat;  // the gradient of the residual stream
    return inputs() + if_there(positions, 2 * T * kFloat) +
           std::max({below + if_there(!recompute, forward), below + final_norm + 2 * stream,
                     below + final_norm + states + objective() + std::max(head_forward(), head_backward()),
                     below + final_norm + 2 * stream + norm_sums(H), below + if_there(recompute, stream + forward),
                     below + at_work + stream + mlp_backward(), below + at_work + stream + attention_backward()});
  }

 private:
  // Gathered out of columns: tokens, predicting, targets, int64; what the pass gives, and up to five columns that a loss reads.
  int64_t inputs() const { return T * (3 * 8 + 6 * kFloat); }

  // What an objective keeps of each action.
  int64_t objective() const { return 16 * T * kFloat; }

  // A packed matrix.
  int64_t packed(int64_t outputs, int64_t inputs) const {
    constexpr int64_t kWidth = PackedMatrix::kWidth;
    const int64_t pairs = rounds ? (inputs + 1) / 2 * 2 : inputs;
    return (outputs + kWidth - 1) / kWidth * kWidth * pairs * number;
  }

  // What a half of a layer reads, and of the norm in front of it; the residual stream itself, where it is not kept anyway.
  int64_t read_keeps(bool stream_kept) const {
    return T * (if_there(before || rounds, H * number) + if_there(before, statistics) +
                if_there(!stream_kept && (before || !rounds), H * kFloat));
  }
  int64_t added_keeps() const { return if_there(after, T * (H * kFloat + statistics)); }

  int64_t heads_keep() const {
    return T *
           ((2 * Q + 2 * K) * number + heads * kFloat + if_there(heads_normed, (Q + K) * number + rows_of_heads * statistics));
  }
  int64_t attention_keeps() const { return read_keeps(true) + heads_keep() + added_keeps(); }
  int64_t mlp_keeps() const { return read_keeps(false) + T * I * (gated ? 2 : 1) * number + added_keeps(); }
  int64_t layer_keeps() const { return attention_keeps() + mlp_keeps(); }

  // Beside the residual stream: all projections in float32 with queries under way, or what is kept with the sum.
  int64_t attention_forward() const {
    const int64_t projections =
        T * (Q + 2 * K) * kFloat +
        std::max(packed(Q + 2 * K, H), T * (Q + 2 * K) * number + if_there(heads_normed, T * (Q + K + std::max(Q, K)) * kFloat));
    const int64_t sum = heads_keep() + T * H * kFloat + packed(H, Q) + added_keeps();
    return read_keeps(true) + std::max(projections, sum);
  }

  // Its result, where x does not become it, and what a norm makes of it.
  int64_t mlp_forward(bool keeps) const {
    const int64_t inner = std::min(T, kForwardTokens) * I * (number + (gated ? 2 : 1) * kFloat);
    const int64_t weights = packed(I, H) * (gated ? 2 : 1) + packed(H, I);
    return inner + weights + if_there(keeps || after, T * H * kFloat) + if_there(after, T * H * kFloat);
  }

  // Sums of a norm's weight gradient over blocks of rows, for rows of all `size` columns of a token.
  int64_t norm_sums(int64_t size) const { return statistics * (T / 128 + 1) * size; }

  int64_t logits() const { return std::min(T, kLogitActions) * std::min(V, kLogitTokens); }
  int64_t logit_rows() const { return std::min(V, kLogitTokens); }

  int64_t head_forward() const {
    if (value_head) return T * kFloat;
    return if_there(rounds, T * H * number) + logits() * kFloat + packed(logit_rows(), H) + 3 * T * kFloat;
  }

  // Gradient of the hidden states, and of the head's weight.
  int64_t head_backward() const {
    if (value_head) return T * H * kFloat + H * kFloat;
    return T * H * kFloat + logits() * (kFloat + if_there(rounds, number)) + packed(logit_rows(), H) + packed(H, logit_rows()) +
           4 * T * kFloat;
  }

  // What was added, as an operand; what was read, in float32.
  int64_t added_gradient() const { return if_there(rounds || after, T * H * number); }
  int64_t read_gradient() const { return if_there(before, T * H * kFloat); }

  int64_t mlp_backward() const {
    const int64_t norms = norm_sums(H);
    return added_gradient() + read_gradient() +
           std::max(packed(I, H) + packed(H, I) * (gated ? 2 : 1) + std::min(T, kBackwardTokens) * I * number, norms);
  }

  // What the layer's network kept is free again.
  int64_t attention_backward() const {
    const int64_t output = added_gradient() + T * Q * number + packed(Q, H);
    const int64_t of_heads = if_there(heads_normed, norm_sums(Q));
    const int64_t projections = read_gradient() + std::max(packed(H, std::max(Q, K)), norm_sums(H));
    return std::max({output, of_heads, projections}) - mlp_keeps();
  }

  const int64_t T, H, I, V, Q, K;
  const int64_t number;
  const bool rounds, recompute;
  const int64_t layers, heads;
  const int64_t statistics;  // of a row that is normed, bytes
  const bool before, after, gated, heads_normed;
  const int64_t rows_of_heads;  // that are normed, of a token
  const bool positions, value_head;
};

// The tables of angles: one for all samples, but for those whose angles depend on their length.
int64_t rotary_bytes(const ModelConfig& config, const ModelPass& pass) {
  if (config.learned_positions) return 0;
  const bool own = config.rope.scaling == RopeScaling::kDynamic || config.rope.scaling == RopeScaling::kLongrope;
  return (own ? pass.tokens : pass.longest_sample) * config.rotary_dims() * kFloat;
}

}  // namespace

ActivationBytes activation_bytes(const ModelConfig& config, const ModelPass& pass) {
  const Peak peak(config, pass);
  const int64_t attention = attention_scratch_words(pass.precision, pass.longest_sample, config.head_dim) * kFloat;
  const int64_t on_thread = attention + (pass.training ? outer_product_scratch_bytes() : 0);  // the latter is kept
  const int64_t rows = pass.value_head ? 0 : pass.tokens * static_cast<int64_t>(sizeof(RowSums));
  return {.tensors = pass.training ? peak.training() : peak.without_gradient(),
          .scratch = pass.threads * on_thread + rotary_bytes(config, pass) + rows};
}

}  // namespace sluice::models
