#include "models/train/flat_parameters.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <thread>

#include "base/error.h"
#include "models/layers/weights.h"
#include "models/memory/tensor_memory.h"

namespace sluice::models {
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
  EXPECT_EQ(model.matrix.const_data_ptr(), model.flat.weights());  // matrices come first
  EXPECT_EQ(model.vector.const_data_ptr(), model.flat.weights() + 48);
  EXPECT_EQ(model.flat.matrix_floats(), 48);
  EXPECT_EQ(model.flat.size(), 64);
  EXPECT_EQ(FlatParameters::floats({3, 35}), 64);
  EXPECT_TRUE(model.matrix.requires_grad() && model.matrix.is_leaf());
}

TEST(FlatParameters, EveryHandleOfAWeightMoves) {
  Model model;
  EXPECT_EQ(model.tied.const_data_ptr(), model.flat.weights());
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
  EXPECT_EQ(model.flat.gradients()[0], 4.0f);
  EXPECT_EQ(model.flat.gradients()[34], 4.0f);
  EXPECT_EQ(model.flat.gradients()[35], 0.0f);  // between the two
  EXPECT_EQ(model.flat.gradients()[48], 2.0f);
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

TEST(FlatParameters, AFrozenWeightIsABug) { EXPECT_THROW(FlatParameters({{"frozen", at::randn({3})}}), InternalError); }

}  // namespace
}  // namespace sluice::models
