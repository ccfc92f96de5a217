#pragma once

#include <span>
#include <vector>

#include "models/layers/feed_forward/feed_forward.h"
#include "models/layers/feed_forward/mlp.h"

namespace sluice::models {

/// A mixture of experts (ExpertsConfig): E gated MLPs of intermediate size I, of which a router chooses K for each token. The
/// result is the sum of what these give, each times its weight; then, in Qwen2-MoE, of a shared expert times the sigmoid of a
/// gate of its own. Sums run in the order of the experts, the shared one last, so that a token's result does not depend on the
/// others. Every expert computes the rows of its own tokens alone: nothing is padded, and nothing dropped however many tokens
/// choose it. Sources: Shazeer et al. 2017, "Outrageously large neural networks"; Fedus et al. 2021, "Switch transformers";
/// Jiang et al. 2024, "Mixtral of experts"; Qwen2 (Yang et al. 2024) and Qwen3 (Yang et al. 2025).
///
/// Router and experts read operands; logits, softmax, weights and sums are float32.
///
/// Keeps, of every token, its experts, their weights and the softmax of the router, and of every token and expert that it goes
/// through what goes into the activation and what that is multiplied with: [T K,I] each, operands; [T,I] of the shared expert.
class Experts final : public FeedForward {
 public:
  // Linear layers: the router [E,H], three of each expert as Mlp has them, those of the shared expert, its gate [1,H].
  static constexpr size_t kRouter = 0;
  static constexpr size_t linear_of(size_t expert, Mlp::Linear linear) { return 1 + expert * Mlp::kLinears + linear; }

  // The last one, where there is a shared expert: all others are the router and three of each expert.
  static constexpr bool is_shared_gate(size_t linear, size_t linears) {
    return linear + 1 == linears && (linears - 1) % Mlp::kLinears != 0;
  }

  std::vector<NetworkTensor> tensors(const ModelConfig& config) const override;
  std::vector<std::vector<size_t>> stacks(size_t linears) const override;

  /// All ranks with columns route all tokens. What is shared out of an expert are its columns, or experts are whole
  /// (expert_share_step.h); of the shared one it is columns always.
  TokenRange outputs_of(size_t linear, size_t linears, int64_t outputs, const ColumnShare& share) const override;

  TensorShapes kept(const PassShape& shape) const override;
  void forward(const LayerPass& pass, std::span<const LinearWeights> weights, const at::Tensor& in,
               std::span<const at::Tensor> kept, const LayerRoutes& routes, const at::Tensor& out, bool add) const override;
  void backward(const LayerPass& pass, std::span<const LinearWeights> weights, const at::Tensor& in,
                std::span<const at::Tensor> kept, const at::Tensor& grad, const ReadGradient& of_in,
                const RouterOfLayer* router) const override;
  PartBytes bytes(const PassShape& shape) const override;
  int64_t adapter_bytes(const PassShape& shape) const override;

  /// Waits for the device once: how many rows an expert has decides what comes next.
  at::Tensor in_operators(const ModelConfig& config, std::span<const LinearWeights> weights, const at::Tensor& in,
                          const TensorMaths& maths, const RouterOfLayer* router, const RoutesInOperators& routes) const override;

  void step(const ModelConfig& config, std::span<const PackedLinear> packed, const StepRows& rows,
            StepScratch& scratch) const override;
};

inline constexpr Experts kExperts;

}  // namespace sluice::models
