#include "nodes/models/gradients/host_transport.h"

#include <span>
#include <utility>
#include <vector>

namespace sluice::nodes {

int64_t place_of_square(int64_t floats) { return 2 * models::BlockSquares::blocks_of(floats); }

std::vector<int64_t> begins_of(FloatRange bucket, int ranks, const std::function<int64_t(int64_t)>& place) {
  std::vector<int64_t> begins;
  for (int rank = 0; rank < ranks; ++rank) begins.push_back(place(bucket.begin + owned_floats(bucket.size(), rank, ranks).begin));
  begins.push_back(place(bucket.end));
  return begins;
}

HostTransport::HostTransport(models::AdamW& optimizer, engine::GradientGroup& group, int ranks)
    : optimizer_(optimizer), group_(group), ranks_(ranks), buffers_(optimizer.parameters()) {}

void HostTransport::add(size_t index, const Done& done) {
  const FloatRange bucket = optimizer_.buckets()[index];
  optimizer_.parameters().add_up_slots(bucket);
  buffers_.fetch_gradients(bucket);
  std::vector<float*> parts = buffers_.gradients();
  for (float*& part : parts) part += bucket.begin;
  const std::vector<FloatRange>& sums = is_sharded() ? optimizer_.owned() : optimizer_.buckets();
  const Done last = done ? behind(done, [this, sums] { buffers_.put_back_gradients(sums); }) : done;
  if (!is_sharded()) return group_.all_reduce(parts, bucket.size(), last);
  const auto added = [this, bucket](int64_t begin, std::span<const float> sum) {
    optimizer_.squares().set(bucket.begin + begin, sum);
  };
  group_.reduce_scatter(parts, bucket.size(), added, nullptr);
  gather(reinterpret_cast<float*>(optimizer_.squares().sums().data()), bucket, place_of_square, last);
}

void HostTransport::bring_weights(const Done& done) {
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
  if (!is_sharded()) return done();
  const std::vector<FloatRange>& buckets = optimizer_.buckets();
  for (const FloatRange& owned : optimizer_.owned()) buffers_.fetch_weights(owned);
  const Done last = behind(done, [this] { buffers_.put_back_weights(); });
  for (size_t i = 0; i < buckets.size(); ++i)
    gather(buffers_.weights(), buckets[i], std::identity(), i + 1 == buckets.size() ? last : nullptr);
}

// On the thread of the group, which nothing may be thrown on.
HostTransport::Done HostTransport::behind(const Done& done, std::function<void()> last) {
  if (buffers_.bytes() == 0) return done;
  return [this, done, last = std::move(last)] {
    try {
      last();
    } catch (const std::exception&) {
      failure_ = std::current_exception();
    }
    done();
  };
}

// What each rank has of the bucket.
void HostTransport::gather(float* values, FloatRange bucket, const Place& place, const Done& done) {
  group_.all_gather(values, begins_of(bucket, ranks_, place), done);
}

}  // namespace sluice::nodes
