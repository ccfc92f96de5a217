#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "models/kernels/adamw_kernel.h"
#include "models/train/flat_parameters.h"

namespace sluice::models {

struct AdamWOptions {
  double learning_rate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0.0;    // of matrices; norms and biases have none
  double clip_grad_norm = 0.0;  // the largest norm of all gradients together; 0: not clipped
};

/// Adam with decoupled weight decay (Loshchilov and Hutter 2019, algorithm 2). Updates the weights it was given in place. The
/// same bits for any number of threads. Not thread-safe.
class AdamW {
 public:
  using NamedTensors = models::NamedTensors;

  /// `weights`: those that need a gradient, as Weights::trainable() gives them; handles, so the model sees every step. From now
  /// on they lie in one buffer, and so do their gradients, which are always defined: see FlatParameters.
  /// `mine`: which of `slots` their gradients are of; see FlatParameters.
  AdamW(const NamedTensors& weights, const AdamWOptions& options, int slots = 1, SlotRange mine = {0, 1});

  /// One step with gradient `.grad * scale`, of the first slot, which leaves `.grad` zero. Gradients are accumulated as sums, so the scale is one
  /// over the count. Returns the norm of the scaled gradients before clipping; if it is not finite nothing is changed but the
  /// gradients, and the caller must not go on as if the step had been made.
  double step(double scale);

  /// The Euclidean norm of all gradients together, times `scale`. Summed in double precision in a fixed order.
  double gradient_norm(double scale) const;

  void clear_gradients() { flat_.clear_gradients(); }

  int64_t steps() const { return steps_; }
  double learning_rate() const { return options_.learning_rate; }
  void set_learning_rate(double learning_rate) { options_.learning_rate = learning_rate; }

  /// What training changes: with steps() all that a later run needs to go on bit for bit. The tensors themselves, not copies; who
  /// fills them makes the optimizer one that has come to that point.
  const FlatParameters& parameters() const { return flat_; }
  FlatParameters& parameters() { return flat_; }
  const at::Tensor& first_moments() const { return first_moments_; }    // a buffer as parameters() has them
  const at::Tensor& second_moments() const { return second_moments_; }  // likewise
  void set_steps(int64_t steps) { steps_ = steps; }

 private:
  void step_range(int64_t first, int64_t count, const AdamWFactors& factors);
  void step_on_device(double gradient_scale);

  FlatParameters flat_;
  AdamWOptions options_;
  at::Tensor first_moments_;   // as long as the buffers
  at::Tensor second_moments_;  // likewise
  int64_t steps_ = 0;
};

}  // namespace sluice::models
