#include "nodes/models/gradients/device_transport.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <span>

#include "models/devices/streams.h"
#include "nodes/models/gradients/host_transport.h"

namespace sluice::nodes {
namespace {

constexpr int64_t kBlocksAtOnce = 64;  // whose squares are widened: 8 MB in double precision

at::Tensor range_of(const at::Tensor& buffer, FloatRange range) { return buffer.narrow(0, range.begin, range.size()); }

float* floats_of_tensor(const at::Tensor& tensor) { return static_cast<float*>(tensor.mutable_data_ptr()); }

// Of each block of a range that begins with one: [blocks] in double precision, on the host.
at::Tensor squares_of(const at::Tensor& values) {
  const int64_t whole = values.numel() / kFloatsOfABlock, rest = values.numel() % kFloatsOfABlock;
  const at::Tensor squares = at::empty({whole + (rest > 0 ? 1 : 0)}, values.options().dtype(at::kDouble));
  for (int64_t first = 0; first < whole; first += kBlocksAtOnce) {
    const int64_t blocks = std::min(kBlocksAtOnce, whole - first);
    const at::Tensor some = values.narrow(0, first * kFloatsOfABlock, blocks * kFloatsOfABlock).view({blocks, kFloatsOfABlock});
    squares.narrow(0, first, blocks).copy_(some.to(at::kDouble).pow(2).sum(1));
  }
  if (rest > 0) squares.select(0, whole).copy_(values.narrow(0, whole * kFloatsOfABlock, rest).to(at::kDouble).pow(2).sum());
  return squares.to(at::kCPU);
}

}  // namespace

DeviceTransport::DeviceTransport(models::AdamW& optimizer, engine::DeviceExchange& devices, engine::GradientGroup& host,
                                 const engine::World& world)
    : optimizer_(optimizer), devices_(devices), host_(host), world_(world) {
  for (int rank = 0; rank < world.size; ++rank) {
    const engine::World of{.rank = rank, .size = world.size, .slots = world.slots};
    subtrees_.push_back(subtrees_of(world.slots, of.mine()));
  }
}

FloatRange DeviceTransport::part_of(FloatRange bucket, int rank) const {
  const FloatRange part = owned_floats(bucket.size(), rank, world_.size);
  return {bucket.begin + part.begin, bucket.begin + part.end};
}

void DeviceTransport::add(size_t index, const Done& done) {
  const at::NoGradGuard no_gradient;
  const FloatRange bucket = optimizer_.buckets()[index];
  optimizer_.parameters().add_up_slots(bucket);
  add_part(bucket);
  if (!is_sharded()) gather(optimizer_.parameters().gradient_buffer(), bucket);
  if (!done) return;
  if (!is_sharded()) return done();
  square_own();
  gather_squares(done);
}

// The sum of this rank's part comes to be in the first buffer, and everything else of the bucket is zero.
void DeviceTransport::add_part(FloatRange bucket) {
  const FloatRange own = part_of(bucket, world_.rank);
  const std::vector<at::Tensor> buffers = optimizer_.parameters().subtree_buffers();
  std::vector<at::Tensor> values;  // of all subtrees of all ranks, in the order of their slots
  std::vector<SlotRange> leaves;
  Pieces to, from;
  for (int rank = 0; rank < world_.size; ++rank) {
    const FloatRange theirs = part_of(bucket, rank);
    for (size_t i = 0; i < subtrees_[static_cast<size_t>(rank)].size(); ++i) {
      leaves.push_back(subtrees_[static_cast<size_t>(rank)][i]);
      if (rank == world_.rank) {
        values.push_back(range_of(buffers[i], own));
        continue;
      }
      values.push_back(at::empty({own.size()}, buffers.front().options()));
      from.push_back({.rank = rank, .floats = floats_of_tensor(values.back()), .count = own.size()});
    }
    if (rank == world_.rank) continue;
    for (const at::Tensor& buffer : buffers)
      to.push_back({.rank = rank, .floats = floats_of_tensor(range_of(buffer, theirs)), .count = theirs.size()});
  }
  devices_.exchange(to, from, models::current_stream_on(optimizer_.parameters().weight_buffer().device()));
  for (const auto& [into, of] : tree_additions(world_.slots, leaves))
    values[static_cast<size_t>(into)].add_(values[static_cast<size_t>(of)]);
  const at::Tensor sum = values.front().clone();  // the first may be a buffer that is cleared
  for (const at::Tensor& buffer : buffers) range_of(buffer, bucket).zero_();
  range_of(buffers.front(), own).copy_(sum);
}

// Each rank's part of the bucket comes to all.
void DeviceTransport::gather(const at::Tensor& buffer, FloatRange bucket) {
  const FloatRange own = part_of(bucket, world_.rank);
  Pieces to, from;
  for (int rank = 0; rank < world_.size; ++rank) {
    if (rank == world_.rank) continue;
    const FloatRange theirs = part_of(bucket, rank);
    to.push_back({.rank = rank, .floats = floats_of_tensor(range_of(buffer, own)), .count = own.size()});
    from.push_back({.rank = rank, .floats = floats_of_tensor(range_of(buffer, theirs)), .count = theirs.size()});
  }
  devices_.exchange(to, from, models::current_stream_on(optimizer_.parameters().weight_buffer().device()));
}

void DeviceTransport::square_own() {
  const std::span<double> sums = optimizer_.squares().sums();
  for (const FloatRange& owned : optimizer_.owned()) {
    if (owned.size() == 0) continue;
    const at::Tensor squares = squares_of(range_of(optimizer_.parameters().gradient_buffer(), owned));
    std::copy_n(squares.const_data_ptr<double>(), squares.numel(), sums.begin() + owned.begin / kFloatsOfABlock);
  }
}

void DeviceTransport::gather_squares(const Done& done) {
  auto* const squares = reinterpret_cast<float*>(optimizer_.squares().sums().data());
  const std::vector<FloatRange>& buckets = optimizer_.buckets();
  for (size_t i = 0; i < buckets.size(); ++i)
    host_.all_gather(squares, begins_of(buckets[i], world_.size, place_of_square), i + 1 == buckets.size() ? done : nullptr);
}

void DeviceTransport::bring_weights(const Done& done) {
  const at::NoGradGuard no_gradient;
  for (size_t i = 0; is_sharded() && i < optimizer_.buckets().size(); ++i)
    gather(optimizer_.parameters().weight_buffer(), optimizer_.buckets()[i]);
  models::finish_work_on(optimizer_.parameters().weight_buffer().device());
  done();
}

}  // namespace sluice::nodes
