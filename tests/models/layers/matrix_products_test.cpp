#include "models/layers/matrix_products.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "models/kernels/parallel.h"
#include "models/layers/operand.h"
#include "tests/models/tensors.h"

namespace sluice::models::matrix_products_test {
namespace {

at::Tensor exact(const at::Tensor& x) { return x.to(at::kDouble); }

struct Shape {
  int64_t rows, inputs, outputs;
};

// Sizes around the edges of tiles (12 x 32), row blocks (256) and input blocks (512), in both precisions.
class MatrixProducts : public ::testing::TestWithParam<std::tuple<Shape, Precision>> {
 protected:
  Shape shape_ = std::get<0>(GetParam());
  Precision precision_ = std::get<1>(GetParam());
  at::Tensor x_ = to_operand(at::randn({shape_.rows, shape_.inputs}), precision_);
  at::Tensor grad_ = to_operand(at::randn({shape_.rows, shape_.outputs}), precision_);
  at::Tensor weight_ = to_operand(at::randn({shape_.outputs, shape_.inputs}), precision_).to(at::kFloat);
};

TEST_P(MatrixProducts, OfALayerMatchTheFormula) {
  const at::Tensor bias = at::randn({shape_.outputs}), residual = at::randn({shape_.rows, shape_.outputs});
  const at::Tensor product = at::matmul(exact(x_), exact(weight_).t());
  EXPECT_LT(largest_difference(layer_output(x_, weight_), product), 2e-4);
  EXPECT_LT(largest_difference(layer_output(x_, weight_, bias, residual), product + exact(bias) + exact(residual)), 2e-4);
  EXPECT_LT(largest_difference(layer_output(x_, weight_.to(operand_type(precision_))), product), 2e-4);
}

TEST_P(MatrixProducts, OfABackwardAreAddedUp) {
  const at::Tensor of_input = at::randn(x_.sizes()), of_weight = at::randn(weight_.sizes()),
                   of_bias = at::randn({shape_.outputs});
  const at::Tensor expected_input = exact(of_input) + at::matmul(exact(grad_), exact(weight_));
  const at::Tensor expected_weight = exact(of_weight) + at::matmul(exact(grad_).t(), exact(x_));
  const at::Tensor expected_bias = exact(of_bias) + exact(grad_).sum(0);
  add_input_gradient(of_input, grad_, weight_);
  add_weight_gradient(of_weight, grad_, x_);
  add_bias_gradient(of_bias, grad_);
  EXPECT_LT(largest_difference(of_input, expected_input), 2e-4);
  EXPECT_LT(largest_difference(of_weight, expected_weight), 2e-4);
  EXPECT_LT(largest_difference(of_bias, expected_bias), 1e-4);
}

TEST_P(MatrixProducts, AreTheSameForAnyNumberOfThreads) {
  const auto products = [&](int threads) {
    set_loop_threads(threads);
    const at::Tensor of_input = at::zeros(x_.sizes()), of_weight = at::zeros(weight_.sizes()),
                     of_bias = at::zeros({shape_.outputs});
    add_input_gradient(of_input, grad_, weight_);
    add_weight_gradient(of_weight, grad_, x_);
    add_bias_gradient(of_bias, grad_);
    return std::vector<at::Tensor>{layer_output(x_, weight_), of_input, of_weight, of_bias};
  };
  const int64_t before = loop_threads();
  const auto one = products(1), three = products(3);
  set_loop_threads(before);
  for (size_t i = 0; i < one.size(); ++i) EXPECT_TRUE(one[i].equal(three[i])) << i;
}

TEST_P(MatrixProducts, RowsMayBeApart) {
  const at::Tensor apart = at::zeros({shape_.rows, shape_.outputs + 3});
  multiply(x_, packed({weight_}, precision_), {}, apart.narrow(1, 1, shape_.outputs));
  EXPECT_TRUE(apart.narrow(1, 1, shape_.outputs).equal(layer_output(x_, weight_)));
  EXPECT_EQ(apart.select(1, 0).abs().sum().item<float>(), 0.0f);
}

INSTANTIATE_TEST_SUITE_P(Shapes, MatrixProducts,
                         ::testing::Combine(::testing::Values(Shape{1, 1, 1}, Shape{7, 33, 13}, Shape{300, 64, 48},
                                                              Shape{257, 32, 12}, Shape{700, 530, 25}),
                                            ::testing::Values(Precision::kFloat32, Precision::kBfloat16)));

TEST(MatrixProducts, WeightsThatReadTheSameAreOneMatrix) {
  const at::Tensor x = at::randn({9, 20}), first = at::randn({5, 20}), second = at::randn({40, 20}), out = at::empty({9, 45});
  multiply(x, packed({first, second}, Precision::kFloat32), {}, out);
  EXPECT_TRUE(out.narrow(1, 0, 5).equal(layer_output(x, first)));
  EXPECT_TRUE(out.narrow(1, 5, 40).equal(layer_output(x, second)));
}

TEST(MatrixProducts, OperandsOfTwoPrecisionsAreABug) {
  const at::Tensor x = at::randn({2, 4}), weight = at::randn({3, 4});
  EXPECT_THROW(multiply(x, packed({weight}, Precision::kBfloat16), {}, at::empty({2, 3})), InternalError);
}

}  // namespace
}  // namespace sluice::models::matrix_products_test
