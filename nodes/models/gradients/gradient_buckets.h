#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "models/train/adamw.h"
#include "nodes/models/gradients/bucket_transport.h"
#include "nodes/models/gradients/gradient_exchange.h"
#include "nodes/models/gradients/weight_hooks.h"

namespace sluice::nodes {

/// Adds the gradients of a model over the ranks of a run, and brings the weights that each rank has stepped to all, bucket by
/// bucket. A backward goes through a buffer from its end to its beginning (models/train/flat_parameters.h), and so do the
/// buckets: what the last backward of a step is done with goes out while the rest is computed. The order is the same on all
/// ranks, whoever begins early. How a bucket goes, its transport knows.
///
/// Ownership: uses the optimizer, which outlives it. Belongs to the thread that trains. What has gone out belongs to the
/// transport until add_up() is done, or this is destroyed: in an iteration that is dropped add_up() is never called. Failure: as
/// BucketTransport; a gradient that changes after it has gone out is a bug, InternalError.
class GradientBuckets final : public GradientExchange {
 public:
  GradientBuckets(models::AdamW& optimizer, std::unique_ptr<BucketTransport> transport);
  ~GradientBuckets() override;

  void expect_last_backward() override;

  /// What has not gone out yet does.
  void add_up(const Done& done) override;

  void bring_weights(const Done& done) override { transport_->bring_weights(done); }

  /// On the host, beside the optimizer's buffers.
  int64_t bytes() const { return transport_->bytes(); }

 private:
  void finish_weight(size_t weight);

  models::AdamW& optimizer_;
  const std::unique_ptr<BucketTransport> transport_;
  std::vector<std::vector<size_t>> buckets_of_weight_;  // by weight: those that it lies in

  bool last_ = false;                 // the last backward of the step is on its way
  std::vector<size_t> unfinished_;    // by bucket: weights with which it is not done
  size_t left_;                       // buckets that have not gone out: those below
  std::optional<WeightHooks> hooks_;  // once some may go out early; last: it calls back
};

}  // namespace sluice::nodes
