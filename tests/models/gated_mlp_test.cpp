#include "models/gated_mlp.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/sigmoid.h>
#include <gtest/gtest.h>

#include <vector>

namespace sluice::models {
namespace {

double largest_difference(const at::Tensor& a, const at::Tensor& b) { return (a.to(at::kDouble) - b).abs().max().item<double>(); }

// Odd sizes, and gates far out where the exponential of one sign would overflow.
TEST(GatedMlp, ValueAndGradientsMatchTheFormula) {
  const std::vector<at::Tensor> in{at::randn({21, 18}), at::randn({21, 18}), at::randn({37, 18}) * 20.0, at::randn({37, 18}),
                                   at::randn({18, 37})};
  std::vector<at::Tensor> exact;
  for (const at::Tensor& x : in) {
    x.set_requires_grad(true);
    exact.push_back(x.detach().to(at::kDouble).set_requires_grad(true));
  }
  const at::Tensor out = gated_mlp(in[0], in[1], in[2], in[3], in[4]);
  const at::Tensor gate = at::matmul(exact[1], exact[2].t()), up = at::matmul(exact[1], exact[3].t());
  const at::Tensor expected = exact[0] + at::matmul(gate * at::sigmoid(gate) * up, exact[4].t());
  EXPECT_LT(largest_difference(out, expected), 1e-5 * expected.abs().max().item<double>());

  const at::Tensor grad = at::randn(out.sizes());
  out.backward(grad);
  expected.backward(grad.to(at::kDouble));
  for (size_t i = 0; i < in.size(); ++i) {
    EXPECT_LT(largest_difference(in[i].grad(), exact[i].grad()), 1e-5 * exact[i].grad().abs().max().item<double>())
        << "argument " << i;
  }
}

}  // namespace
}  // namespace sluice::models
