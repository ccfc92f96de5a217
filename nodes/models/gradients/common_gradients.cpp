#include "nodes/models/gradients/common_gradients.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace sluice::nodes {

CommonGradients::CommonGradients(models::AdamW& optimizer, engine::GradientGroup* group, int ranks, engine::SharingRanks sharing)
    : optimizer_(optimizer),
      group_(group),
      ranks_(ranks),
      sharing_(std::move(sharing)),
      ranges_(optimizer.parameters().ranges()),
      words_(static_cast<size_t>(ranks)),
      hooks_(optimizer.parameters().leaves(), [this](size_t weight) { give(weight); }) {
  SLUICE_CHECK(optimizer.common_sums() != nullptr, "an optimizer that has its gradients alone");
  int64_t most = 0;
  for (const FloatRange& own : optimizer.owned()) most = std::max(most, own.size());
  given_.resize(static_cast<size_t>(most * (sharing_.groups() - 1)));
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
    join_sums(0, [this, done] {
      optimizer_.square_own_sums();
      gather_squares(done);
    });
  });
}

FloatRange CommonGradients::owned(size_t bucket, int rank) const {
  const FloatRange all = optimizer_.buckets()[bucket], own = owned_floats(all.size(), rank, ranks_);
  return {all.begin + own.begin, all.begin + own.end};
}

// Calls work(rank, index) for who has this rank's place in another group.
template <class Work>
void CommonGradients::for_each_counterpart(const Work& work) const {
  int64_t index = 0;
  for (int group = 0; group < sharing_.groups(); ++group)
    if (group != sharing_.group) work(sharing_.counterparts[static_cast<size_t>(group)], index++);
}

void CommonGradients::exchange(Stretches out, Stretches in, const Done& done) {
  ++waiting_;
  group_->exchange(std::move(out), std::move(in), [this, done] {
    done();
    --waiting_;
  });
}

// A bucket after the other, so that what comes needs little memory.
void CommonGradients::join_sums(size_t bucket, const Done& done) {
  if (sharing_.groups() == 1 || bucket == optimizer_.buckets().size()) return done();
  models::FixedPointSums& sums = *optimizer_.common_sums();
  const int64_t own = owned(bucket, sharing_.counterparts[static_cast<size_t>(sharing_.group)]).size();
  const auto stretch = [](int rank, int64_t* of, int64_t count) {
    constexpr int64_t kFloatsOfASum = sizeof(int64_t) / sizeof(float);
    return engine::GradientGroup::Stretch{rank, reinterpret_cast<float*>(of), kFloatsOfASum * count};
  };
  Stretches out, in;
  for_each_counterpart([&](int rank, int64_t index) {
    const FloatRange theirs = owned(bucket, rank);
    out.push_back(stretch(rank, sums.given(theirs), theirs.size()));
    in.push_back(stretch(rank, given_.data() + index * own, own));
  });
  exchange(std::move(out), std::move(in), [this, bucket, done] {
    add_given(bucket);
    join_sums(bucket + 1, done);
  });
}

// What went to others is theirs: here these sums begin again.
void CommonGradients::add_given(size_t bucket) {
  models::FixedPointSums& sums = *optimizer_.common_sums();
  const FloatRange own = owned(bucket, sharing_.counterparts[static_cast<size_t>(sharing_.group)]);
  for_each_counterpart([&](int rank, int64_t index) {
    sums.add_given(own, given_.data() + index * own.size());
    sums.clear(owned(bucket, rank));
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

// Nobody reads old weights any more: before a step all have said that they have added their gradients.
void CommonGradients::bring_weights(const Done& done) {
  has_stepped_ = true;
  spread_weights(0, [this, done] { wait_for_all(done); });
}

void CommonGradients::spread_weights(size_t bucket, const Done& done) {
  if (sharing_.groups() == 1 || bucket == optimizer_.buckets().size()) return done();
  auto* const weights = optimizer_.parameters().weight_buffer().data_ptr<float>();
  const auto stretch = [weights](int rank, FloatRange range) {
    return engine::GradientGroup::Stretch{rank, weights + range.begin, range.size()};
  };
  const FloatRange own = owned(bucket, sharing_.counterparts[static_cast<size_t>(sharing_.group)]);
  Stretches out, in;
  for_each_counterpart([&](int rank, int64_t /*index*/) {
    out.push_back(stretch(rank, own));
    in.push_back(stretch(rank, owned(bucket, rank)));
  });
  exchange(std::move(out), std::move(in), [this, bucket, done] { spread_weights(bucket + 1, done); });
}

}  // namespace sluice::nodes
