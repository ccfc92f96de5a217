#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "models/config/config.h"
#include "models/config/precision.h"
#include "models/layers/feed_forward/router_training.h"
#include "models/layers/segment.h"
#include "models/layers/weights.h"

namespace sluice::models {

/// What the backward keeps of a layer: what it needs, or the layer's input alone, and the rest is computed again.
enum class ActivationCheckpointing { kNone, kLayer };

constexpr std::array<std::pair<ActivationCheckpointing, const char*>, 2> enum_names(ActivationCheckpointing) {
  return {{{ActivationCheckpointing::kNone, "none"}, {ActivationCheckpointing::kLayer, "layer"}}};
}

/// How a model is computed; its weights and results are the same.
struct Compute {
  Precision precision = Precision::kFloat32;
  ActivationCheckpointing checkpointing = ActivationCheckpointing::kNone;
};

/// A decoder-only transformer with the maths that its ModelConfig says. Owns its weights. Ragged in, ragged out: samples lie back
/// to back, there is no padding. Not thread-safe while a gradient is computed; forward passes without gradient may run from
/// several threads as long as nobody changes the weights.
///
/// With Precision::kBfloat16 operands of products are rounded where generation rounds them (models/sample/decoder.h), and all
/// sums have generation's order: a trained model's log-probabilities are those it sampled with, bit for bit.
///
/// With Precision::kBfloat16, matrices and the embedding (is_operand()) may be bfloat16 where they need no gradient: half the
/// memory, and the same results as from float32 ones, which are rounded once. With Precision::kFloat32 all weights may be of a
/// narrower dtype (bfloat16, float16): everything is computed in that dtype, rounded where transformers rounds
/// (narrow_forward.h). With packed weights (Weights::is_packed()) it gives the bits of the weights that were packed.
class Transformer {
 public:
  Transformer(ModelConfig config, Weights weights, Compute compute = {})
      : config_(std::move(config)), weights_(std::move(weights)), compute_(compute) {}

  /// Final hidden states (after the last norm) of every token.
  ///
  /// tokens         [T]    int64, 0 <= id < V
  /// sample_offsets [S+1]  sample s is tokens[offsets[s]..offsets[s+1]); positions count from 0 in each sample, which has at most
  ///                       as many tokens as a table of learned positions
  /// routes         [T, RouteForm::token_bytes()] uint8, on the CPU: where the routers of a mixture have to send the tokens, and the
  ///                       weights of these experts are what they give them (routes.h). Undefined: they choose
  /// returns        [T,H]  float32; differentiable in the weights that need a gradient, once. Those are added to .grad in
  ///                       place as the backward goes through the layers
  at::Tensor hidden_states(const at::Tensor& tokens, std::span<const int64_t> sample_offsets,
                           const at::Tensor& routes = {}) const;

  /// Likewise of the tokens of a segment, [n], of the samples that begin at `sample_offsets` in the whole pass: [n,H]. The other
  /// ranks compute theirs at the same time, and all of them their backward. On the CPU the bits are those of the whole pass; the
  /// gradients of weights are what the rows of the segment add. On a device there is no ring, and experts are not shared out.
  at::Tensor hidden_states(const at::Tensor& tokens, std::span<const int64_t> sample_offsets, const Segment& segment,
                           const at::Tensor& routes = {}) const;

  /// Where its weights are, and what it computes with must be.
  at::Device device() const { return weights_.final_norm.device(); }

  const ModelConfig& config() const { return config_; }
  const Compute& compute() const { return compute_; }

  /// Whom the routers of a mixture tell of what is trained on, and who has a loss for them; null: nobody.
  const std::shared_ptr<RouterTraining>& routers() const { return routers_; }
  void set_routers(std::shared_ptr<RouterTraining> routers) { routers_ = std::move(routers); }

  const Weights& weights() const { return weights_; }
  Weights& weights() { return weights_; }

 private:
  ModelConfig config_;
  Weights weights_;
  Compute compute_;
  std::shared_ptr<RouterTraining> routers_;
};

}  // namespace sluice::models
