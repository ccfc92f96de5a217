#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <vector>

#include "base/numbers/float_range.h"
#include "engine/contract/world/gradient_group.h"
#include "models/train/adamw.h"
#include "nodes/models/gradients/bucket_transport.h"
#include "nodes/models/gradients/trained_buffers.h"

namespace sluice::nodes {

/// Over the host: what lies on a device goes there and back as copies (trained_buffers.h).
///
/// Uses the optimizer and the group, which outlive it. What has gone out belongs to the group until the last add() is done, or
/// forget(). Failure: as GradientGroup; what goes wrong with a copy back the next call throws.
class HostTransport final : public BucketTransport {
 public:
  HostTransport(models::AdamW& optimizer, engine::GradientGroup& group, int ranks);

  void add(size_t bucket, const Done& done) override;
  void bring_weights(const Done& done) override;
  bool may_begin_early() const override { return true; }
  void forget() override { group_.forget(); }
  int64_t bytes() const override { return buffers_.bytes(); }

 private:
  using Place = std::function<int64_t(int64_t)>;

  bool is_sharded() const { return optimizer_.owners() > 1; }
  Done behind(const Done& done, std::function<void()> last);
  void gather(float* values, FloatRange bucket, const Place& place, const Done& done);

  models::AdamW& optimizer_;
  engine::GradientGroup& group_;
  const int ranks_;
  TrainedBuffers buffers_;
  std::exception_ptr failure_;
};

/// Of a block's sum of squares, a double, which travels as two floats: where that of this float is.
int64_t place_of_square(int64_t floats);

/// Where each rank's part of a bucket begins, and the last one ends, of values in which a float of the buffer has this place.
std::vector<int64_t> begins_of(FloatRange bucket, int ranks, const std::function<int64_t(int64_t)>& place);

}  // namespace sluice::nodes
