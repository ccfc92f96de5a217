#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "base/numbers/float_range.h"
#include "base/numbers/sum_tree.h"
#include "engine/contract/world/device_exchange.h"
#include "engine/contract/world/gradient_group.h"
#include "engine/contract/world/world.h"
#include "models/train/adamw.h"
#include "nodes/models/gradients/bucket_transport.h"

namespace sluice::nodes {

/// From device to device. Each rank gets from all others what they have of its part of a bucket and adds it as the tree says
/// (base/numbers/sum_tree.h), so the bits of the sum do not depend on the number of ranks; the traffic is that of a ring. Over
/// the host go the squares of blocks alone, eight bytes for each 16,384 gradients.
///
/// Uses all it is given, which outlives it; `world` is of the ranks that train. Takes, for a moment, memory of the device for the
/// parts of a bucket that come. Failure: as DeviceExchange and GradientGroup.
class DeviceTransport final : public BucketTransport {
 public:
  DeviceTransport(models::AdamW& optimizer, engine::DeviceExchange& devices, engine::GradientGroup& host,
                  const engine::World& world);

  void add(size_t bucket, const Done& done) override;
  void bring_weights(const Done& done) override;
  bool may_begin_early() const override { return false; }  // a device that waits for another can do nothing else
  void forget() override { host_.forget(); }

 private:
  using Pieces = std::vector<engine::DeviceExchange::Piece>;

  bool is_sharded() const { return optimizer_.owners() > 1; }
  FloatRange part_of(FloatRange bucket, int rank) const;
  void add_part(FloatRange bucket);
  void gather(const at::Tensor& buffer, FloatRange bucket);
  void square_own();
  void gather_squares(const Done& done);

  models::AdamW& optimizer_;
  engine::DeviceExchange& devices_;
  engine::GradientGroup& host_;
  const engine::World world_;
  std::vector<std::vector<SlotRange>> subtrees_;  // by rank
};

}  // namespace sluice::nodes
