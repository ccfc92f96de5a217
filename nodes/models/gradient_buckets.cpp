#include "nodes/models/gradient_buckets.h"

#include <algorithm>
#include <span>
#include <utility>

#include "base/error.h"

namespace sluice::nodes {
namespace {

bool overlap(FloatRange a, FloatRange b) { return a.begin < b.end && b.begin < a.end; }

// Of a block's sum of squares, a double, which travels as two floats.
int64_t place_of_square(int64_t floats) { return 2 * models::BlockSquares::blocks_of(floats); }

}  // namespace

GradientBuckets::GradientBuckets(models::AdamW& optimizer, engine::GradientGroup& group, int ranks)
    : optimizer_(optimizer),
      group_(group),
      buffers_(optimizer.parameters()),
      ranks_(ranks),
      left_(optimizer.buckets().size()),
      hooks_(optimizer.parameters().leaves(), [this](size_t weight) { finish_weight(weight); }) {
  for (const FloatRange& weight : optimizer.parameters().ranges()) {
    std::vector<size_t> buckets;
    for (size_t bucket = 0; bucket < left_; ++bucket)
      if (overlap(weight, optimizer.buckets()[bucket])) buckets.push_back(bucket);
    buckets_of_weight_.push_back(std::move(buckets));
  }
}

// What has gone out early in an iteration that was dropped is still on its way.
GradientBuckets::~GradientBuckets() {
  if (left_ < optimizer_.buckets().size()) group_.forget();
}

void GradientBuckets::expect_last_backward() {
  SLUICE_CHECK(!last_, "two backward passes are the last of one step");
  last_ = true;
  unfinished_.assign(left_, 0);
  for (const auto& buckets : buckets_of_weight_)
    for (const size_t bucket : buckets) ++unfinished_[bucket];
}

// The first bucket waits for add_up(), so that there is something to be done behind all others: the backward is done with it last.
void GradientBuckets::finish_weight(size_t weight) {
  if (!last_) return;
  for (const size_t bucket : buckets_of_weight_[weight]) {
    SLUICE_CHECK(bucket < left_ && unfinished_[bucket] > 0, "a gradient was added to after it had gone to other ranks");
    --unfinished_[bucket];
  }
  while (left_ > 1 && unfinished_[left_ - 1] == 0) give(--left_, nullptr);
}

void GradientBuckets::add_up(const Done& done) {
  last_ = false;
  while (left_ > 1) give(--left_, nullptr);
  left_ = optimizer_.buckets().size();
  const std::vector<FloatRange>& sums = is_sharded() ? optimizer_.owned() : optimizer_.buckets();
  give(0, behind(done, [this, sums] { buffers_.put_back_gradients(sums); }));
}

void GradientBuckets::give(size_t index, const Done& done) {
  const FloatRange bucket = optimizer_.buckets()[index];
  models::FlatParameters& parameters = optimizer_.parameters();
  parameters.add_up_slots(bucket);
  buffers_.fetch_gradients(bucket);
  std::vector<float*> parts = buffers_.gradients();
  for (float*& part : parts) part += bucket.begin;
  if (!is_sharded()) return group_.all_reduce(parts, bucket.size(), done);
  const auto added = [this, bucket](int64_t begin, std::span<const float> sum) {
    optimizer_.squares().set(bucket.begin + begin, sum);
  };
  group_.reduce_scatter(parts, bucket.size(), added, nullptr);
  gather(reinterpret_cast<float*>(optimizer_.squares().sums().data()), bucket, place_of_square, done);
}

void GradientBuckets::bring_weights(const Done& done) {
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
  if (!is_sharded()) return done();
  const std::vector<FloatRange>& buckets = optimizer_.buckets();
  for (const FloatRange& owned : optimizer_.owned()) buffers_.fetch_weights(owned);
  const Done last = behind(done, [this] { buffers_.put_back_weights(); });
  for (size_t i = 0; i < buckets.size(); ++i)
    gather(buffers_.weights(), buckets[i], std::identity(), i + 1 == buckets.size() ? last : nullptr);
}

// On the thread of the group, which nothing may be thrown on.
GradientBuckets::Done GradientBuckets::behind(const Done& done, std::function<void()> last) {
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

// What each rank has of the bucket, of `values` in which a float of the buffer has this place.
void GradientBuckets::gather(float* values, FloatRange bucket, const Place& place, const Done& done) {
  std::vector<int64_t> begins;
  for (int rank = 0; rank < ranks_; ++rank)
    begins.push_back(place(bucket.begin + owned_floats(bucket.size(), rank, ranks_).begin));
  begins.push_back(place(bucket.end));
  group_.all_gather(values, std::move(begins), done);
}

}  // namespace sluice::nodes
