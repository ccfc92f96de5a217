#include "models/train/flat_parameters.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

#include "base/error.h"
#include "models/layers/weights.h"
#include "models/memory/tensor_memory.h"

namespace sluice::models::flat_parameters_test {
namespace {

struct Model {
  at::Tensor vector = at::randn({3}).set_requires_grad(true);
  at::Tensor matrix = at::randn({5, 7}).set_requires_grad(true);
  at::Tensor values_before = matrix.detach().clone();
  at::Tensor tied = matrix;
  FlatParameters flat{{{"vector", vector}, {"matrix", matrix}}};
};

TEST(FlatParameters, WeightsKeepTheirValuesAndShapesInOneBuffer) {
  Model model;
  EXPECT_TRUE(model.matrix.equal(model.values_before));
  EXPECT_EQ(model.vector.const_data_ptr(), model.flat.weights());  // vectors come first
  EXPECT_EQ(model.matrix.const_data_ptr(), model.flat.weights() + 16);
  EXPECT_EQ(model.flat.vector_floats(), 16);
  EXPECT_EQ(model.flat.size(), 64);
  EXPECT_EQ(FlatLayout::floats_for({3, 35}), 64);
  EXPECT_TRUE(model.matrix.requires_grad() && model.matrix.is_leaf());
}

TEST(FlatParameters, EveryHandleOfAWeightMoves) {
  Model model;
  EXPECT_EQ(model.tied.const_data_ptr(), model.flat.weights() + 16);
}

TEST(FlatParameters, TiedWeightsExistOnce) {
  Weights weights;
  weights.embedding = at::randn({5, 7});
  weights.head = weights.embedding;
  weights.embedding.set_requires_grad(true);
  const FlatParameters flat(weights.trainable());
  EXPECT_EQ(flat.size(), 48);
  EXPECT_EQ(weights.head.const_data_ptr(), flat.weight_buffer().const_data_ptr());
  const Weights copy = weights.with(flat.views(at::zeros({flat.size()})));
  EXPECT_TRUE(copy.head.is_same(copy.embedding));
  const Weights moved = weights.to(at::kCPU);
  EXPECT_TRUE(moved.head.is_same(moved.embedding));
  EXPECT_EQ(moved.head.const_data_ptr(), flat.weight_buffer().const_data_ptr());
}

TEST(FlatParameters, ABackwardAddsToTheBuffer) {
  Model model;
  for (int pass = 0; pass < 2; ++pass) (model.matrix.sum() * 2.0 + model.vector.sum()).backward();
  EXPECT_EQ(model.flat.gradients()[0], 2.0f);
  EXPECT_EQ(model.flat.gradients()[3], 0.0f);  // between the two
  EXPECT_EQ(model.flat.gradients()[16], 4.0f);
  EXPECT_EQ(model.flat.gradients()[50], 4.0f);
  model.flat.check_gradients();
  model.flat.clear_gradients();
  EXPECT_EQ(model.matrix.grad().abs().sum().item<float>(), 0.0f);
}

TEST(FlatParameters, TakeTheMemoryOfGradientsWhenThatOfTheWeightsIsFree) {
  constexpr int64_t kBytes = 2 * 100 * 1000 * 4;
  int64_t peak = 0, live = 0;
  std::thread([&] {
    TensorMemory memory;
    memory.watch_this_thread();
    const NamedTensors weights{{"one", at::randn({100, 1000}).set_requires_grad(true)},
                               {"other", at::randn({100, 1000}).set_requires_grad(true)}};
    const FlatParameters flat(weights);
    peak = memory.take_peak(), live = memory.live();
  }).join();
  EXPECT_EQ(live, 2 * kBytes);
  EXPECT_EQ(peak, live);
}

TEST(FlatParameters, AReplacedGradientIsABug) {
  Model model;
  model.vector.mutable_grad() = at::zeros({3});
  EXPECT_THROW(model.flat.check_gradients(), InternalError);
}

// Numbers of which the order of the additions shows.
at::Tensor gradient_of_slot(int slot) { return at::randn({5, 7}).mul(slot % 2 == 0 ? 1e6 : 1e-3); }

TEST(FlatParameters, SlotsAreAddedAsTheTreeSaysWhoeverHasThem) {
  constexpr int kSlots = 6;
  std::vector<at::Tensor> gradients;
  for (int slot = 0; slot < kSlots; ++slot) gradients.push_back(gradient_of_slot(slot));
  const at::Tensor expected =
      gradients[0].add(gradients[1]).add(gradients[2].add(gradients[3])).add(gradients[4].add(gradients[5]));
  const auto filled = [&](SlotRange mine) {
    auto weight = std::make_unique<at::Tensor>(at::randn({5, 7}).set_requires_grad(true));
    FlatParameters flat({{"matrix", *weight}}, kSlots, mine);
    EXPECT_FALSE(flat.take_entered());
    for (int slot = mine.last - 1; slot >= mine.first; --slot) {
      flat.enter_slot(slot);
      weight->mutable_grad().add_(gradients[static_cast<size_t>(slot)]);
      flat.check_gradients();
    }
    EXPECT_TRUE(flat.take_entered());
    EXPECT_FALSE(flat.take_entered());
    for (const FloatRange range : {FloatRange{0, 20}, FloatRange{20, flat.size()}}) flat.add_up_slots(range);
    return flat;
  };
  const auto first_of = [](float* buffer) { return at::from_blob(buffer, {5, 7}).clone(); };
  FlatParameters alone = filled({0, kSlots});
  EXPECT_TRUE(first_of(alone.gradients()).equal(expected));
  ASSERT_EQ(alone.subtrees().size(), 1u);
  FlatParameters lower = filled({0, 3}), upper = filled({3, 6});
  const std::vector<float*> low = lower.subtrees(), high = upper.subtrees();
  ASSERT_EQ(low.size(), 2u);
  ASSERT_EQ(high.size(), 2u);
  const at::Tensor sum = first_of(low[0]).add(first_of(low[1]).add(first_of(high[0]))).add(first_of(high[1]));
  EXPECT_TRUE(sum.equal(expected));
}

TEST(FlatParameters, ASlotOfAnotherRankIsABug) {
  const at::Tensor weight = at::randn({3}).set_requires_grad(true);
  FlatParameters flat({{"vector", weight}}, 4, {2, 4});
  EXPECT_THROW(flat.enter_slot(1), InternalError);
  EXPECT_THROW(flat.enter_slot(4), InternalError);
}

TEST(FlatParameters, AFrozenWeightIsABug) { EXPECT_THROW(FlatParameters({{"frozen", at::randn({3})}}), InternalError); }

}  // namespace
}  // namespace sluice::models::flat_parameters_test
