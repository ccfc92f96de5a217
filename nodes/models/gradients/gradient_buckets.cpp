#include "nodes/models/gradients/gradient_buckets.h"

#include <utility>

#include "base/error.h"

namespace sluice::nodes {
namespace {

bool overlap(FloatRange a, FloatRange b) { return a.begin < b.end && b.begin < a.end; }

}  // namespace

GradientBuckets::GradientBuckets(models::AdamW& optimizer, std::unique_ptr<BucketTransport> transport)
    : optimizer_(optimizer), transport_(std::move(transport)), left_(optimizer.buckets().size()) {
  for (const FloatRange& weight : optimizer.parameters().ranges()) {
    std::vector<size_t> buckets;
    for (size_t bucket = 0; bucket < left_; ++bucket)
      if (overlap(weight, optimizer.buckets()[bucket])) buckets.push_back(bucket);
    buckets_of_weight_.push_back(std::move(buckets));
  }
}

// What has gone out early in an iteration that was dropped is still on its way.
GradientBuckets::~GradientBuckets() {
  if (left_ < optimizer_.buckets().size()) transport_->forget();
}

void GradientBuckets::expect_last_backward() {
  SLUICE_CHECK(!last_, "two backward passes are the last of one step");
  last_ = transport_->may_begin_early();
  if (last_ && !hooks_) hooks_.emplace(optimizer_.parameters().leaves(), [this](size_t weight) { finish_weight(weight); });
  unfinished_.assign(left_, 0);
  for (const auto& buckets : buckets_of_weight_)
    for (const size_t bucket : buckets) ++unfinished_[bucket];
}

// The first bucket waits for add_up(), so that there is something to be done after all others: the backward is done with it
// last.
void GradientBuckets::finish_weight(size_t weight) {
  if (!last_) return;
  for (const size_t bucket : buckets_of_weight_[weight]) {
    SLUICE_CHECK(bucket < left_ && unfinished_[bucket] > 0, "a gradient was added to after it had gone to other ranks");
    --unfinished_[bucket];
  }
  while (left_ > 1 && unfinished_[left_ - 1] == 0) transport_->add(--left_, nullptr);
}

void GradientBuckets::add_up(const Done& done) {
  last_ = false;
  while (left_ > 1) transport_->add(--left_, nullptr);
  left_ = optimizer_.buckets().size();
  transport_->add(0, done);
}

}  // namespace sluice::nodes
