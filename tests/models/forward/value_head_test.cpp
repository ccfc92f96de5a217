#include "models/forward/value_head.h"

#include <ATen/ops/allclose.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

namespace sluice::models::value_head_test {
namespace {

struct Gradients {
  at::Tensor hidden, head;
};

// Of a weighted sum of values.
template <class Values>
Gradients gradients_of(const Values& values, const at::Tensor& rows, const at::Tensor& weight) {
  const at::Tensor hidden = rows.clone().set_requires_grad(true), head = weight.clone().set_requires_grad(true);
  values(hidden, head).mul(rows.select(1, 0)).sum().backward();
  return {hidden.grad(), head.grad()};
}

TEST(ValueHead, IsTheProductOfEachRowAndItsGradient) {
  const at::Tensor hidden = at::randn({37, 65}), head = at::randn({1, 65});
  const auto product = [](const at::Tensor& x, const at::Tensor& w) { return at::matmul(x, w.squeeze(0)); };
  EXPECT_TRUE(at::allclose(head_values(hidden, head), product(hidden, head), 1e-5, 1e-5));
  const Gradients ours = gradients_of(head_values, hidden, head), theirs = gradients_of(product, hidden, head);
  EXPECT_TRUE(at::allclose(ours.hidden, theirs.hidden, 1e-5, 1e-5));
  EXPECT_TRUE(at::allclose(ours.head, theirs.head, 1e-5, 1e-4));
}

TEST(ValueHead, ARowHasTheSameBitsInEveryBatch) {
  const at::Tensor hidden = at::randn({300, 300}), head = at::randn({1, 300});
  const at::Tensor all = head_values(hidden, head);
  for (const int64_t rows : {1, 2, 3, 7, 64}) {
    for (int64_t first = 0; first + rows <= 300; first += rows) {
      ASSERT_TRUE(head_values(hidden.narrow(0, first, rows), head).equal(all.narrow(0, first, rows))) << first << ", " << rows;
    }
  }
}

TEST(ValueHead, AFrozenOneHasNoGradientAndPassesItOn) {
  const at::Tensor hidden = at::randn({5, 16}).set_requires_grad(true), head = at::randn({1, 16});
  head_values(hidden, head).sum().backward();
  EXPECT_FALSE(head.grad().defined());
  EXPECT_TRUE(hidden.grad().equal(head.expand({5, 16})));
}

}  // namespace
}  // namespace sluice::models::value_head_test
