#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "models/layers/feed_forward/mlp.h"

namespace sluice::models {

/// A kind of feed-forward network that no built-in family has: the sum of two MLPs that read the same rows, with names of its
/// own. All that has to be written for a new kind; a row of a table of families says who has it.
class SummedMlps final : public FeedForward {
 public:
  static constexpr size_t kSides = 2;

  std::vector<NetworkTensor> tensors(const ModelConfig& config) const override {
    std::vector<NetworkTensor> all;
    for (size_t side = 0; side < kSides; ++side) {
      for (NetworkTensor tensor : kMlp.tensors(config)) {  // "mlp.up_proj.weight" becomes "mlp.left.up_proj.weight"
        tensor.name.insert(tensor.name.find('.'), side == 0 ? ".left" : ".right");
        tensor.linear += side * Mlp::kLinears;
        all.push_back(tensor);
      }
    }
    return all;
  }

  std::vector<std::vector<size_t>> stacks(size_t) const override { return {{0, 1}, {2}, {3, 4}, {5}}; }

  TensorShapes kept(const PassShape& shape) const override {
    TensorShapes both = kMlp.kept(shape);
    const TensorShapes one = both;
    both.insert(both.end(), one.begin(), one.end());
    return both;
  }

  void forward(const LayerPass& pass, std::span<const LinearWeights> weights, const at::Tensor& in,
               std::span<const at::Tensor> kept, const LayerRoutes& routes, const at::Tensor& out, bool add) const override {
    for (size_t side = 0; side < kSides; ++side)
      kMlp.forward(pass, of_side(weights, side), in, of_side(kept, side), routes, out, add || side > 0);
  }

  void backward(const LayerPass& pass, std::span<const LinearWeights> weights, const at::Tensor& in,
                std::span<const at::Tensor> kept, const at::Tensor& grad, const ReadGradient& of_in,
                const RouterOfLayer* router) const override {
    for (size_t side = 0; side < kSides; ++side)
      kMlp.backward(pass, of_side(weights, side), in, of_side(kept, side), grad, {of_in.out, of_in.add || side > 0}, router);
  }

  // One after the other.
  PartBytes bytes(const PassShape& shape) const override {
    PartBytes both = kMlp.bytes(shape);
    both.kept *= kSides;
    return both;
  }

  int64_t adapter_bytes(const PassShape& shape) const override { return kMlp.adapter_bytes(shape); }

  at::Tensor in_operators(const ModelConfig& config, std::span<const LinearWeights> weights, const at::Tensor& in,
                          const TensorMaths& maths, const RouterOfLayer* router, const RoutesInOperators& routes) const override {
    return kMlp.in_operators(config, of_side(weights, 0), in, maths, router, routes)
        .add(kMlp.in_operators(config, of_side(weights, 1), in, maths, router, routes));
  }

  void step(const ModelConfig& config, std::span<const PackedLinear> packed, const StepRows& rows,
            StepScratch& scratch) const override {
    for (size_t side = 0; side < kSides; ++side) {
      StepRows of = rows;
      of.accumulate = rows.accumulate || side > 0;
      kMlp.step(config, of_side(packed, side), of, scratch);
    }
  }

 private:
  template <class T>
  static std::span<const T> of_side(std::span<const T> all, size_t side) {
    const size_t half = all.size() / kSides;
    return all.subspan(side * half, half);
  }
};

inline constexpr SummedMlps kSummedMlps;

}  // namespace sluice::models
