#include "models/layers/embedding.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "models/portable/layer_maths.h"
#include "tests/models/dense_reference.h"

namespace sluice::models::embedding_test {
namespace {

/// One sample of five tokens, one of them twice, in a model whose embedding is scaled and which has learned positions.
class Embedding : public ::testing::Test {
 protected:
  Embedding() {
    config_.embedding_scale = 3.0, config_.learned_positions = true;
    weights_ = reference::random_weights(config_);
    weights_.embedding.set_requires_grad(true);
    weights_.positions.set_requires_grad(true);
  }

  at::Tensor embedded(const Weights& weights, Precision precision) const {
    return embed(config_, weights, tokens_, RaggedLayout(config_, offsets_), precision);
  }

  at::Tensor embedded_by_operators(Precision precision) const {
    const at::Tensor positions = at::tensor({0, 1, 2, 3, 4}, at::kLong);
    return portable::LayerMaths(config_, precision).embed(weights_, tokens_, positions);
  }

  // What a backward with `grad` leaves in the gradient of the table, which is cleared.
  at::Tensor gradient(const at::Tensor& x, const at::Tensor& grad) {
    (x * grad).sum().backward();
    const at::Tensor result = weights_.embedding.grad().clone();
    weights_.embedding.mutable_grad().zero_();
    return result;
  }

  ModelConfig config_ = reference::small_config();
  Weights weights_;
  const at::Tensor tokens_ = at::tensor({4, 0, 7, 4, 2}, at::kLong);
  const std::vector<int64_t> offsets_{0, 5};
};

TEST_F(Embedding, InBfloat16IsOfRoundedRowsAndOfPositionsThatAreNot) {
  const at::Tensor rows = at::embedding(weights_.embedding.detach(), tokens_).to(at::kBFloat16).to(at::kFloat);
  const at::Tensor expected = rows * 3.0f + weights_.positions.detach().narrow(0, 0, 5);
  EXPECT_TRUE(embedded(weights_, Precision::kBfloat16).equal(expected));
  EXPECT_TRUE(embedded_by_operators(Precision::kBfloat16).equal(expected));
}

TEST_F(Embedding, OfATableThatIsRoundedAlreadyIsTheSame) {
  Weights narrow = weights_.clone();
  narrow.embedding = narrow.embedding.to(at::kBFloat16);
  EXPECT_TRUE(embedded(narrow, Precision::kBfloat16).equal(embedded(weights_, Precision::kBfloat16)));
}

TEST_F(Embedding, RoundsNothingOfTheGradient) {
  const at::Tensor grad = at::randn({5, config_.hidden_size});
  const at::Tensor expected = gradient(embedded(weights_, Precision::kFloat32), grad);
  EXPECT_TRUE(gradient(embedded(weights_, Precision::kBfloat16), grad).equal(expected));
  const at::Tensor by_operators = gradient(embedded_by_operators(Precision::kBfloat16), grad);
  EXPECT_TRUE(by_operators.allclose(expected, 1e-6, 1e-6));
}

}  // namespace
}  // namespace sluice::models::embedding_test
