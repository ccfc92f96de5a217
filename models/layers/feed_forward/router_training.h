#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "models/layers/feed_forward/sample_routing.h"
#include "models/layers/segment.h"

namespace sluice::models {

/// What the passes of a model have told of its routers.
struct RouterRecord {
  /// A sample in one layer.
  struct Sample {
    int64_t tokens = 0;
    int64_t rerouted = 0;  // of these, see SampleRouting
    double counted = 0;    // how much the objective counts it
    double entropy = 0;    // mean over its tokens, in nats
    double loss = 0;       // balance_loss()
  };

  std::vector<Sample> samples;
  std::vector<int64_t> through;  // [L,E] tokens that went through each expert of each layer; zeros of one that is no mixture
};

/// Between who trains a mixture and the routers of its layers: how much their load-balancing loss counts, and what they tell of
/// the passes that are trained on.
///
/// A mixture tells in its backward, which a layer that is computed again has once, too, and in LibTorch's operators where it is
/// computed with a gradient. So passes without a gradient are not told of, nor layers that no gradient goes through.
///
/// The loss of a sample is added to the objective for each mixture: aux_loss times what the objective counts the sample times
/// balance_loss(). It goes into the gradient of the router's logits and nowhere else; the optimizer step divides it by what it
/// divides the objective by. So it is a mean with the weights of the objective's, a sum over samples, and depends on nothing but
/// them.
///
/// Belongs to the thread that trains; on a device the thread of a backward that it waits for.
class RouterTraining {
 public:
  /// aux_loss: at least 0.
  explicit RouterTraining(double aux_loss = 0) : aux_loss_(aux_loss) {}

  double aux_loss() const { return aux_loss_; }

  /// How much the objective counts each sample of the next pass: of a mean over actions that of its actions, of one over samples
  /// 1. Nothing: each counts 1.
  void expect(std::vector<double> counted) { counted_ = std::move(counted); }
  const std::vector<double>& expected() const { return counted_; }

  /// Of a layer, all samples of a pass, whole. Throws InternalError where the pass has other samples than were expected. The
  /// slopes [S][E] of the loss that is added, with respect to the shares of each sample's tokens; none without such a loss.
  std::vector<std::vector<float>> add(const ExpertsConfig& experts, int64_t layer, std::span<const SampleRouting> samples);

  /// What was told since the last call.
  RouterRecord take();

 private:
  const double aux_loss_;
  std::vector<double> counted_;
  RouterRecord record_;
};

/// A layer of a pass that tells.
struct RouterOfLayer {
  RouterTraining& training;
  int64_t layer;
  std::span<const int64_t> offsets;  // [S+1] of the samples, in the rows that are here
  Segment segment = {};              // which these are
  at::Tensor sample_of = {};         // [T] int64, of each token its sample: for LibTorch's operators, on their device
};

}  // namespace sluice::models
