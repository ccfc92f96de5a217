#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <vector>

#include "base/float_range.h"
#include "engine/contract/gradient_group.h"
#include "models/train/adamw.h"
#include "nodes/models/gradient_exchange.h"
#include "nodes/models/trained_buffers.h"
#include "nodes/models/weight_hooks.h"

namespace sluice::nodes {

/// Adds the gradients of a model over the ranks of a run, and brings the weights that each rank has stepped to all, bucket by
/// bucket. A backward goes through a buffer from its end to its beginning (models/train/flat_parameters.h), and so do the buckets:
/// what the last backward of a step is done with goes out while the rest is computed. The order is the same on all ranks, whoever
/// begins early. Of a model on a device copies of the buffers on the host go out (trained_buffers.h).
///
/// Ownership: uses the optimizer and the group, which outlive it. Belongs to the thread that trains. What has gone out belongs to
/// the group until add_up() is done, or this is destroyed: in an iteration that is dropped add_up() is never called. Failure: as
/// GradientGroup; a gradient that changes after it has gone out is a bug, InternalError.
class GradientBuckets final : public GradientExchange {
 public:
  GradientBuckets(models::AdamW& optimizer, engine::GradientGroup& group, int ranks);
  ~GradientBuckets() override;

  void expect_last_backward() override;

  /// What has not gone out yet does.
  void add_up(const Done& done) override;

  void bring_weights(const Done& done) override;

  /// Beside the optimizer's buffers.
  int64_t bytes() const { return buffers_.bytes(); }

 private:
  using Place = std::function<int64_t(int64_t)>;

  bool is_sharded() const { return optimizer_.owners() > 1; }
  void finish_weight(size_t weight);
  void give(size_t bucket, const Done& done);
  Done behind(const Done& done, std::function<void()> last);
  void gather(float* values, FloatRange bucket, const Place& place, const Done& done);

  models::AdamW& optimizer_;
  engine::GradientGroup& group_;
  TrainedBuffers buffers_;
  const int ranks_;
  std::vector<std::vector<size_t>> buckets_of_weight_;  // by weight: those that it lies in

  bool last_ = false;               // the last backward of the step is on its way
  std::exception_ptr failure_;      // of what is done behind an operation; the next call throws it
  std::vector<size_t> unfinished_;  // by bucket: weights with which it is not done
  size_t left_;                     // buckets that have not gone out: those below
  const WeightHooks hooks_;         // last: it calls back
};

}  // namespace sluice::nodes
