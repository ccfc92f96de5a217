#include "nodes/models/common_gradients.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace sluice::nodes {

CommonGradients::CommonGradients(models::AdamW& optimizer, engine::GradientGroup* group, int ranks)
    : optimizer_(optimizer),
      group_(group),
      ranks_(ranks),
      ranges_(optimizer.parameters().ranges()),
      words_(static_cast<size_t>(ranks)),
      hooks_(optimizer.parameters().leaves(), [this](size_t weight) { give(weight); }) {
  SLUICE_CHECK(optimizer.common_sums() != nullptr, "an optimizer that has its gradients alone");
}

// In an iteration that was dropped the others may never come.
CommonGradients::~CommonGradients() {
  if (waiting_ > 0) group_->forget();
}

void CommonGradients::give(size_t weight) {
  const FloatRange range = ranges_[weight];
  models::FlatParameters& parameters = optimizer_.parameters();
  if (!has_stepped_) passing_bytes_ = std::max(passing_bytes_.load(), parameters.passing_bytes());
  if (!parameters.holds_gradients(range)) return;  // as of experts that other ranks compute: zeros, which to take needs memory
  optimizer_.common_sums()->add(range, parameters.gradients() + range.begin);
  parameters.give_back_gradients(range);
}

void CommonGradients::wait_for_all(const Done& done) {
  if (group_ == nullptr) return done();
  std::vector<int64_t> begins;
  for (int rank = 0; rank <= ranks_; ++rank) begins.push_back(rank);
  ++waiting_;
  group_->all_gather(words_.data(), std::move(begins), [this, done] {
    done();
    --waiting_;
  });
}

// Whoever has a part of the sums squares it when all have added to it.
void CommonGradients::add_up(const Done& done) {
  wait_for_all([this, done] {
    optimizer_.square_own_sums();
    gather_squares(done);
  });
}

// A bucket after the other: of each all ranks have a part.
void CommonGradients::gather_squares(const Done& done) {
  if (group_ == nullptr) return done();
  constexpr int64_t kFloatsOfASquare = sizeof(double) / sizeof(float);
  auto* const squares = reinterpret_cast<float*>(optimizer_.squares().sums().data());
  const std::vector<FloatRange>& buckets = optimizer_.buckets();
  for (size_t i = 0; i < buckets.size(); ++i) {
    std::vector<int64_t> begins;
    for (int rank = 0; rank <= ranks_; ++rank) {
      const int64_t at = rank == ranks_ ? buckets[i].end : buckets[i].begin + owned_floats(buckets[i].size(), rank, ranks_).begin;
      begins.push_back(kFloatsOfASquare * models::BlockSquares::blocks_of(at));
    }
    ++waiting_;
    group_->all_gather(squares, std::move(begins), [this, told = i + 1 == buckets.size() ? done : Done()] {
      if (told) told();
      --waiting_;
    });
  }
}

void CommonGradients::bring_weights(const Done& done) {
  has_stepped_ = true;
  wait_for_all(done);
}

}  // namespace sluice::nodes
