#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "models/kernels/adamw_kernel.h"
#include "models/train/block_squares.h"
#include "models/train/fixed_point_sums.h"
#include "models/train/flat_parameters.h"
#include "models/train/weight_groups.h"

namespace sluice::models {

struct AdamWOptions {
  double learning_rate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0.0;    // of matrices; norms and biases have none
  double clip_grad_norm = 0.0;  // the largest norm of all gradients together; 0: not clipped
  std::vector<WeightGroupOptions> groups;
};

/// What the owners of a model have in common: its weights, of which each steps its part, and the sums of its gradients.
struct CommonParameters {
  at::Tensor weights;  // as FlatParameters has them
  std::shared_ptr<FixedPointSums> sums;
};

/// Whose slots an optimizer has gradients of, and what it steps: its part of each bucket among those of all owners.
struct OptimizerShare {
  int slots = 1;
  SlotRange mine = {0, 1};
  int owner = 0;
  int owners = 1;
  int64_t floats_of_bucket = kFloatsOfABucket;
  std::optional<CommonParameters> common;  // none: this has all of them itself
};

/// Adam with decoupled weight decay (Loshchilov and Hutter 2019, algorithm 2). Updates the weights it was given in place. The
/// same bits for any number of threads, and of owners. Not thread-safe.
///
/// Of several owners each keeps the moments of what it owns alone and steps that (Rajbhandari et al. 2020, ZeRO, stage 1).
/// Somebody else adds up the gradients, tells the squares() of all blocks, and brings the weights to all owners. Where they have
/// weights and sums in common (stage 3), a step takes the gradients out of the sums.
class AdamW {
 public:
  using NamedTensors = models::NamedTensors;

  /// `weights`: those that need a gradient, as Weights::trainable() gives them; handles, so the model sees every step. From now
  /// on they lie in one buffer, and so do their gradients, which are always defined: see FlatParameters. Throws UserError for a
  /// group that matches none of them.
  AdamW(const NamedTensors& weights, const AdamWOptions& options, const OptimizerShare& share = {});

  /// One step with gradient `.grad * scale`, of the first slot, which leaves `.grad` zero. Gradients are accumulated as sums, so
  /// the scale is one over the count. Returns the norm of the scaled gradients before clipping; if it is not finite nothing is
  /// changed but the gradients, and the caller must not go on as if the step had been made.
  double step(double scale);

  /// The Euclidean norm of all gradients together, times `scale`. Summed in double precision in a fixed order.
  double gradient_norm(double scale);

  void clear_gradients();

  /// From now on a step also leaves its matrices in `matrices`[size() - vector_floats()], rounded to the type of that: on a
  /// device, where this owner steps all. They are there already.
  void write_matrices_to(const at::Tensor& matrices);

  /// What the buffers are cut into, and what this steps of each bucket.
  const std::vector<FloatRange>& buckets() const { return buckets_; }
  const std::vector<FloatRange>& owned() const { return owned_; }
  int owners() const { return owners_; }

  /// Of the gradients of the next step, where there are several owners or common sums. All must be there before its norm is asked
  /// for.
  BlockSquares& squares() { return squares_; }

  /// Null: the gradients are added up in parameters().
  FixedPointSums* common_sums() { return sums_.get(); }

  /// squares() of what this owns of common sums.
  void square_own_sums();

  int64_t steps() const { return steps_; }
  double learning_rate() const { return options_.learning_rate; }
  void set_learning_rate(double learning_rate) { options_.learning_rate = learning_rate; }

  /// What training changes: with steps() all that a later run needs to go on bit for bit. The tensors themselves, not copies; who
  /// fills them makes the optimizer one that has come to that point.
  const FlatParameters& parameters() const { return flat_; }
  FlatParameters& parameters() { return flat_; }
  const at::Tensor& first_moments() const { return first_moments_; }    // [floats_of(owned())], packed: models/train/stretch.h
  const at::Tensor& second_moments() const { return second_moments_; }  // likewise
  void set_steps(int64_t steps) { steps_ = steps; }

 private:
  // Neighbours in the buffers that a step treats alike.
  struct Alike {
    FloatRange range;
    double learning_rate_scale = 1;
    double weight_decay = 0;
  };

  std::vector<Alike> alike_of(const NamedTensors& weights) const;
  AdamWFactors factors_of(const Alike& alike, double gradient_scale) const;
  template <class Work>
  void for_each_owned(const Work& work) const;
  void step_floats(int64_t first, int64_t count, int64_t kept, const AdamWFactors& factors);
  void step_on_device(double gradient_scale);
  at::Tensor written_part(FloatRange range) const;
  double norm_on_device() const;

  FlatParameters flat_;
  const std::shared_ptr<FixedPointSums> sums_;
  AdamWOptions options_;
  const std::vector<Alike> alike_;  // all of the buffers, in order
  const int owners_;
  const std::vector<FloatRange> buckets_, owned_;
  BlockSquares squares_;
  at::Tensor first_moments_, second_moments_;
  at::Tensor written_;  // undefined: matrices are nowhere but in the buffer
  int64_t steps_ = 0;
};

}  // namespace sluice::models
