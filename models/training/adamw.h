#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace sluice::models {

struct AdamWOptions {
  double learning_rate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0.0;    // of matrices; norms and biases have none
  double clip_grad_norm = 0.0;  // the largest norm of all gradients together; 0: not clipped
};

/// The Euclidean norm of all gradients together, times `scale`. Undefined gradients count as zero. Summed in double precision in
/// a fixed order: the same for any number of threads.
double gradient_norm(std::span<const at::Tensor> weights, double scale);

/// Adam with decoupled weight decay (Loshchilov and Hutter 2019, algorithm 2). Updates the weights it was given in place.
/// Not thread-safe.
class AdamW {
 public:
  using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

  /// `weights` as Weights::named() gives them; handles, so the model sees every step.
  AdamW(NamedTensors weights, const AdamWOptions& options);

  /// One step with gradient `.grad * scale`, which clears `.grad`. Gradients are accumulated as sums, so the scale is one over
  /// the count. Returns the norm of the scaled gradients before clipping; if it is not finite nothing is changed but the
  /// gradients, and the caller must not go on as if the step had been made. A weight without a gradient is left alone.
  double step(double scale);

  void clear_gradients();

  int64_t steps() const { return steps_; }
  double learning_rate() const { return options_.learning_rate; }
  void set_learning_rate(double learning_rate) { options_.learning_rate = learning_rate; }

  /// Both moments of every weight as "exp_avg.NAME" and "exp_avg_sq.NAME": with steps() all that a later run needs to go on
  /// bit for bit. Handles, not copies.
  NamedTensors state() const;

  /// Takes over what state() and steps() gave. Throws UserError naming the tensor when one is missing or has another shape.
  void load_state(const NamedTensors& state, int64_t steps);

 private:
  NamedTensors weights_;
  AdamWOptions options_;
  std::vector<at::Tensor> first_moments_;
  std::vector<at::Tensor> second_moments_;
  int64_t steps_ = 0;
};

}  // namespace sluice::models
