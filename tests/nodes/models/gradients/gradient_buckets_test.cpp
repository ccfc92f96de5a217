#include "nodes/models/gradients/gradient_buckets.h"

#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "base/error.h"
#include "models/layers/gradient.h"
#include "nodes/models/gradients/host_transport.h"
#include "tests/nodes/gradients_in_one_process.h"

namespace sluice::nodes::gradient_buckets_test {
namespace {

using models::AdamW;
using testing::GradientsInOneProcess;

constexpr int64_t kWidth = 128;  // a matrix is a block

at::Tensor weight() { return at::randn({kWidth, kWidth}).set_requires_grad(true); }

// Three matrices, each a bucket, of one of two ranks. Rank 1 does what is asked for at once, so that nothing is ever waited for.
struct Trained {
  at::Tensor first = weight(), second = weight(), third = weight();
  GradientsInOneProcess groups{2, 2};
  AdamW optimizer{{{"first", first}, {"second", second}, {"third", third}},
                  {},
                  {.slots = 2, .mine = {0, 1}, .owner = 0, .owners = 2, .floats_of_bucket = kFloatsOfABlock}};
  GradientBuckets buckets{optimizer, std::make_unique<HostTransport>(optimizer, *groups.rank(0), 2)};

  // As the layers of a model do, each weight takes its gradient by itself; `seen` is how much had gone out before each.
  at::Tensor layer(const at::Tensor& x, const at::Tensor& weight, std::vector<int>& seen) {
    at::Tensor y = x.detach().clone();
    models::attach_backward({y}, x, {weight}, [this, weight, &seen](std::vector<at::Tensor>&& gradients) {
      seen.push_back(groups.asked_by(0));
      models::gradient_of(weight).add_(1);
      return gradients[0];
    });
    return y;
  }

  std::vector<int> backward() {
    std::vector<int> seen;
    layer(layer(layer(at::randn({3}), first, seen), second, seen), third, seen).sum().backward();
    return seen;
  }
};

constexpr int kOfABucket = 2;  // operations: a sum, and what follows from it for the norm

// The last backward hands on a bucket as soon as it is done with it, before it goes on with the next one.
TEST(GradientBuckets, GoOutBehindTheLastBackward) {
  Trained trained;
  EXPECT_EQ(trained.backward(), (std::vector<int>{0, 0, 0}));
  trained.buckets.expect_last_backward();
  EXPECT_EQ(trained.backward(), (std::vector<int>{0, kOfABucket, 2 * kOfABucket}));
  EXPECT_EQ(trained.groups.asked_by(0), 2 * kOfABucket);  // the first bucket waits
  trained.buckets.add_up([] {});
  EXPECT_EQ(trained.groups.asked_by(0), 3 * kOfABucket);
}

TEST(GradientBuckets, GoOutAtTheEndWhereNobodyKnewWhichBackwardIsTheLast) {
  Trained trained;
  trained.backward();
  EXPECT_EQ(trained.groups.asked_by(0), 0);
  trained.buckets.add_up([] {});
  EXPECT_EQ(trained.groups.asked_by(0), 3 * kOfABucket);
  trained.backward();
  EXPECT_EQ(trained.groups.asked_by(0), 3 * kOfABucket) << "of the next step";
}

// A weight that the last backward does not reach, and whatever is in front of it, waits for the end.
TEST(GradientBuckets, OfWhatTheLastBackwardDoesNotReachGoOutAtTheEnd) {
  Trained trained;
  std::vector<int> seen;
  trained.buckets.expect_last_backward();
  trained.layer(trained.layer(at::randn({3}), trained.first, seen), trained.third, seen).sum().backward();
  EXPECT_EQ(trained.groups.asked_by(0), kOfABucket);
  trained.buckets.add_up([] {});
  EXPECT_EQ(trained.groups.asked_by(0), 3 * kOfABucket);
}

TEST(GradientBuckets, AGradientThatIsAddedToAfterwardsIsABug) {
  Trained trained;
  trained.buckets.expect_last_backward();
  trained.backward();
  EXPECT_THROW(trained.backward(), InternalError);
}

TEST(GradientBuckets, AWeightMayOutliveThem) {
  at::Tensor kept;
  {
    Trained trained;
    kept = trained.first;
  }
  kept.mul(2).sum().backward();
}

}  // namespace
}  // namespace sluice::nodes::gradient_buckets_test
