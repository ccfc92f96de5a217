#include "models/training/activation_bytes.h"

#include <algorithm>

#include "models/kernels/attention_kernels.h"
#include "models/training/logits_chunk.h"
#include "models/training/matrix_products.h"
#include "models/kernels/weight_gradient.h"

namespace sluice::models {
namespace {

constexpr int64_t kFloat = 4;

int64_t if_there(bool there, int64_t floats) { return there ? floats : 0; }

/// Floats of tensors at each point where the sum can be largest. T tokens; H, I, V of the config; Q and K: all query and all
/// key heads; A = T actions. A weight's gradient is freed once it is added to .grad, so it counts while its layer is at work.
class Peak {
 public:
  Peak(const ModelConfig& config, const ModelPass& pass)
      : T(pass.tokens),
        H(config.hidden_size),
        I(config.intermediate_size),
        V(config.vocab_size),
        Q(config.heads * config.head_dim),
        K(config.kv_heads * config.head_dim),
        heads(config.heads),
        layers(config.layers),
        of_row(config.norm == NormKind::kLayer ? 2 : 1),
        before(config.norm_place != NormPlace::kAfter),
        after(config.norm_place != NormPlace::kBefore),
        inner(config.gated_mlp ? 2 : 1),
        heads_normed(config.qk_norm == QkNorm::kNone ? 0 : Q + K),
        rows_of_heads(config.qk_norm == QkNorm::kNone   ? 0
                      : config.qk_norm == QkNorm::kHead ? config.heads + config.kv_heads
                                                        : 2),
        positions(config.learned_positions ? config.max_positions : 0),
        scaled(config.embedding_scale != 1.0),
        tied(config.tied_embeddings && !pass.value_head),
        biases(if_there(config.qkv_bias, Q + 2 * K) + if_there(config.attention_output_bias, H) +
               if_there(config.mlp_bias, 2 * I + H)),
        value_head(pass.value_head),
        chunk(std::min(T, logits_chunk(V))) {}

  int64_t without_gradient() const {
    // x, normed, q, k, v, attended, then log-sums or what is added, normed or not
    const int64_t attention =
        T * (H + read_norm() + heads_normed + rows_of_heads + 2 * Q + 2 * K + std::max(heads, H + added_norm()));
    const int64_t mlp = T * (2 * H + read_norm() + added_norm() + (inner + 1) * I);  // x, normed, out; gate, up, their product
    const int64_t states = 2 * T * H + T;                                            // all, those that predict actions
    return inputs() + std::max({attention, mlp, states, T * H + T + head_forward()});
  }

  int64_t training() const {
    const int64_t below = layers * (attention_keeps() + mlp_keeps());
    const int64_t final_norm = T * (H + of_row);
    // The embedding's gradient as the head's, which waits for the embedding to be reached.
    const int64_t waiting = if_there(tied, V * H);
    const int64_t embedding = std::max(V, positions) * H + T * H + if_there(scaled, T * H);
    return inputs() + if_there(positions > 0, 2 * T) + biases +
           std::max({below + T * (2 * H + I) + if_there(after, T * H),  // forward: the last layer's network
                     below + final_norm + T * 2 * H, below + final_norm + T * H + objective() + head(),
                     below + final_norm + 2 * T * H + norm_sums(H) + waiting, below + waiting + mlp_backward(),
                     below + waiting + attention_backward(), waiting + embedding});
  }

 private:
  // Gathered out of columns: tokens, predicting, targets, int64; what the pass gives, and up to five columns that a loss reads.
  int64_t inputs() const { return T * (2 * 3 + 1 + 5); }

  // What an objective keeps of each action.
  int64_t objective() const { return 16 * T; }

  // Of a token, in each half of a layer: what the norm makes of the residual stream, and what a norm behind the half is given.
  int64_t read_norm() const { return if_there(before, H + of_row); }
  int64_t added_norm() const { return if_there(after, H + of_row); }

  // x, normed, queries and keys before their norm, q, attended, k, v, sums, what is added
  int64_t attention_keeps() const {
    return T * (H + read_norm() + heads_normed + rows_of_heads * of_row + 2 * Q + 2 * K + heads + added_norm());
  }

  // x behind attention, normed again, gate, up, what is added
  int64_t mlp_keeps() const { return T * (H + read_norm() + inner * I + added_norm()); }

  // Sums of a norm's weight gradient over blocks of rows, for rows of all `size` columns of a token.
  int64_t norm_sums(int64_t size) const { return of_row * (T / 128 + 1) * size; }

  // LibTorch copies a transposed matrix through a tile.
  static int64_t transposed(int64_t rows, int64_t columns) {
    constexpr int64_t kTile = 60 * 60;
    return std::min(rows, kTransposedRows) * columns + kTile;
  }

  // logits and log-probabilities of a chunk
  int64_t head_forward() const { return value_head ? T : 2 * chunk * V; }

  // Gradient of the hidden states, and of the head's weight.
  int64_t head() const {
    if (value_head) return T * H + H;
    const int64_t backward = T * H + V * H + chunk * V + std::max(chunk * V, transposed(V, H));
    return std::max(backward, head_forward());
  }

  // The gradient of what is read waits for that of the residual stream.
  int64_t residual_gradient() const { return if_there(after, T * H); }

  int64_t mlp_backward() const {
    const int64_t down = T * (H + I) + H * I + transposed(H, I);
    const int64_t activation = T * (H + (inner + 1) * I) + H * I;
    const int64_t gates = T * (2 * H + inner * I) + H * I + std::max(transposed(I, H), inner * H * I);
    const int64_t norms = 3 * T * H + norm_sums(H) - T * inner * I;
    return residual_gradient() + std::max({down, activation, gates, norms});
  }

  // What the layer's network kept is free again.
  int64_t attention_backward() const {
    const int64_t output = T * (H + Q) + std::max(transposed(H, Q), H * Q);
    const int64_t attention = T * (H + 2 * Q + 2 * K);
    const int64_t of_heads = T * (2 * Q + 2 * K + heads);
    const int64_t projections =
        T * (4 * H + Q + 2 * K) - of_heads - T * heads_normed + std::max(H * Q, transposed(Q, H)) + norm_sums(H);
    const int64_t norms_of_heads = if_there(heads_normed > 0, T * (H + 2 * Q + 2 * K) - of_heads + norm_sums(heads_normed));
    return residual_gradient() + std::max({output, attention, projections, norms_of_heads}) - mlp_keeps();
  }

  const int64_t T, H, I, V, Q, K, heads, layers;
  const int64_t of_row;  // what a norm keeps of a row
  const bool before, after;
  const int64_t inner;          // projections of the MLP that go into its activation
  const int64_t heads_normed;   // columns of queries and keys that a norm keeps
  const int64_t rows_of_heads;  // rows of it in a token
  const int64_t positions;      // learned ones
  const bool scaled, tied;
  const int64_t biases;  // of a layer
  const bool value_head;
  const int64_t chunk;
};

// The tables of angles: one for all samples, but for those whose angles depend on their length.
int64_t rotary_floats(const ModelConfig& config, const ModelPass& pass) {
  if (config.learned_positions) return 0;
  const bool own = config.rope.scaling == RopeScaling::kDynamic || config.rope.scaling == RopeScaling::kLongrope;
  return (own ? pass.tokens : pass.longest_sample) * config.rotary_dims();
}

}  // namespace

ActivationBytes activation_bytes(const ModelConfig& config, const ModelPass& pass) {
  const Peak peak(config, pass);
  const int64_t attention = attention_scratch_floats(pass.longest_sample, config.head_dim);
  const int64_t on_thread = std::max(attention, pass.training ? weight_gradient_scratch_floats() : 0);
  return {.tensors = kFloat * (pass.training ? peak.training() : peak.without_gradient()),
          .scratch = kFloat * (pass.threads * on_thread + rotary_floats(config, pass))};
}

}  // namespace sluice::models
