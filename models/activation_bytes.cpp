#include "models/activation_bytes.h"

#include <algorithm>

#include "models/attention_kernels.h"
#include "models/logits_chunk.h"
#include "models/matrix_products.h"
#include "models/weight_gradient.h"

namespace sluice::models {
namespace {

constexpr int64_t kFloat = 4;

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
        tied(config.tied_embeddings && !pass.value_head),
        bias(config.qkv_bias),
        value_head(pass.value_head),
        chunk(std::min(T, logits_chunk(V))) {}

  int64_t without_gradient() const {
    const int64_t attention = T * (2 * H + 2 * Q + 2 * K + std::max(heads, H));  // x, normed, q, k, v, attended, log-sums or out
    const int64_t mlp = T * (3 * H + 3 * I);                                     // x, normed, out; gate, up, their product
    const int64_t states = 2 * T * H + T;                                        // all, those that predict actions
    return inputs() + std::max({attention, mlp, states, T * H + T + head_forward()});
  }

  int64_t training() const {
    // Of a layer: x, normed, x behind attention, normed again [H]; q, attended [Q]; k, v [K]; gate, up [I]; sums.
    const int64_t layer = T * (4 * H + 2 * Q + 2 * K + 2 * I + heads + 2);
    const int64_t below = layers * layer;
    const int64_t final_norm = T * (H + 1);
    // The embedding's gradient as the head's, which waits for the embedding to be reached.
    const int64_t waiting = tied ? V * H : 0;
    return inputs() + std::max({below + T * (2 * H + 3 * I),  // forward: the last layer's network
                                below + final_norm + T * 2 * H, below + final_norm + T * H + objective() + head(),
                                below + final_norm + 2 * T * H + waiting, below + waiting + mlp_backward(),
                                below + waiting + attention_backward(), waiting + V * H + T * H});
  }

 private:
  // Gathered out of columns: tokens, predicting, targets, int64; what the pass gives, and up to five columns that a loss reads.
  int64_t inputs() const { return T * (2 * 3 + 1 + 5); }

  // What an objective keeps of each action.
  int64_t objective() const { return 16 * T; }

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

  int64_t mlp_backward() const {
    const int64_t down = T * (2 * H + I) + H * I + transposed(H, I);
    const int64_t gates = T * (2 * H + 3 * I) + H * I + std::max(transposed(I, H), 2 * H * I);
    return std::max(down, gates);
  }

  // What the layer's network kept is free again.
  int64_t attention_backward() const {
    const int64_t freed = T * (2 * H + 2 * I + 1);
    const int64_t output = T * (H + Q) + std::max(transposed(H, Q), H * Q);
    const int64_t attention = T * (H + 2 * Q + 2 * K);
    const int64_t projections = T * (4 * H + Q + 2 * K) - T * (2 * Q + 2 * K + heads) + H * Q + (bias ? T * Q : 0);
    return std::max({output, attention, projections}) - freed;
  }

  const int64_t T, H, I, V, Q, K, heads, layers;
  const bool tied, bias, value_head;
  const int64_t chunk;
};

}  // namespace

ActivationBytes activation_bytes(const ModelConfig& config, const ModelPass& pass) {
  const Peak peak(config, pass);
  const int64_t attention = attention_scratch_floats(pass.longest_sample, config.head_dim);
  const int64_t on_thread = std::max(attention, pass.training ? weight_gradient_scratch_floats() : 0);
  return {.tensors = kFloat * (pass.training ? peak.training() : peak.without_gradient()),
          .scratch = kFloat * (pass.threads * on_thread + pass.longest_sample * config.head_dim)};
}

}  // namespace sluice::models
