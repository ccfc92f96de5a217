#pragma once

#include <string_view>
#include <vector>

#include "models/layers/feed_forward/feed_forward.h"

namespace sluice::models {

/// The feed-forward network of all built-in families, of intermediate size I: down(act(gate(x)) * up(x)), or without a gate
/// (ModelConfig::gated_mlp) down(act(up(x))). The activation is of what was not rounded yet, in training as in generation.
/// Source: Shazeer 2020, "GLU variants improve transformer".
///
/// Keeps what goes into the activation and what its result is multiplied with: [T,I] each, operands.
class Mlp final : public FeedForward {
 public:
  enum Linear : size_t { kGate, kUp, kDown, kLinears };  // [I,H], [I,H], [H,I]; no gate in a plain network

  std::vector<NetworkTensor> tensors(const ModelConfig& config) const override;
  std::vector<std::vector<size_t>> stacks(size_t linears) const override;

  TensorShapes kept(const PassShape& shape) const override;
  void forward(const LayerPass& pass, std::span<const LinearWeights> weights, const at::Tensor& in,
               std::span<const at::Tensor> kept, const LayerRoutes& routes, const at::Tensor& out, bool add) const override;
  void backward(const LayerPass& pass, std::span<const LinearWeights> weights, const at::Tensor& in,
                std::span<const at::Tensor> kept, const at::Tensor& grad, const ReadGradient& of_in,
                const RouterOfLayer* router) const override;
  PartBytes bytes(const PassShape& shape) const override;
  int64_t adapter_bytes(const PassShape& shape) const override;

  at::Tensor in_operators(const ModelConfig& config, std::span<const LinearWeights> weights, const at::Tensor& in,
                          const TensorMaths& maths, const RouterOfLayer* router, const RoutesInOperators& routes) const override;

  void step(const ModelConfig& config, std::span<const PackedLinear> packed, const StepRows& rows,
            StepScratch& scratch) const override;
};

inline constexpr Mlp kMlp;

/// All tensors that an MLP of this family can have, without shapes.
std::vector<NetworkTensor> mlp_names(std::string_view weight_names);

}  // namespace sluice::models
