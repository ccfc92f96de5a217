#include "models/kernels/kernels_linear.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include <vector>

#include "tests/models/machines.h"

namespace sluice::models {
namespace {

void multiply(const at::Tensor& x, const at::Tensor& weight, at::Tensor& out, Machine machine, bool accumulate = false,
              const at::Tensor& bias = {}) {
  linear({.x = x.const_data_ptr<float>(),
          .x_stride = x.stride(0),
          .weight = weight.const_data_ptr<float>(),
          .bias = bias.defined() ? bias.const_data_ptr<float>() : nullptr,
          .out = out.mutable_data_ptr<float>(),
          .out_stride = out.stride(0),
          .rows = x.size(0),
          .inputs = x.size(1),
          .outputs = weight.size(0),
          .accumulate = accumulate},
         machine);
}

TEST(Linear, AgreesWithADoublePrecisionProductForAllShapesAndMachines) {
  for (const Machine machine : machines())
    for (const int64_t rows : {1, 2, 5, 13, 70, 200})
      for (const int64_t inputs : {1, 7, 16, 33, 256, 300})
        for (const int64_t outputs : {1, 15, 16, 32, 40, 97}) {
          const at::Tensor x = at::randn({rows, inputs}, at::kFloat), weight = at::randn({outputs, inputs}, at::kFloat);
          at::Tensor out = at::randn({rows, outputs}, at::kFloat);
          const at::Tensor product = at::matmul(x.to(at::kDouble), weight.to(at::kDouble).t());
          const at::Tensor sum = product + out.to(at::kDouble);
          multiply(x, weight, out, machine, true);
          EXPECT_LT((out - sum).abs().max().item<double>(), 1e-4) << rows << " " << inputs << " " << outputs;
          multiply(x, weight, out, machine);
          EXPECT_LT((out - product).abs().max().item<double>(), 1e-4) << rows << " " << inputs << " " << outputs;
        }
}

TEST(Linear, AddsTheBiasOnceHoweverManyInputsThereAre) {
  for (const Machine machine : machines())
    for (const int64_t inputs : {5, 256, 700})
      for (const int64_t outputs : {3, 32, 75}) {
        const at::Tensor x = at::randn({21, inputs}, at::kFloat), weight = at::randn({outputs, inputs}, at::kFloat);
        const at::Tensor bias = at::randn({outputs}, at::kFloat).mul_(10);
        at::Tensor out = at::randn({21, outputs}, at::kFloat);
        const at::Tensor expected = at::matmul(x.to(at::kDouble), weight.to(at::kDouble).t()) + bias, sum = expected + out;
        multiply(x, weight, out, machine, true, bias);
        EXPECT_LT((out - sum).abs().max().item<double>(), 5e-4) << inputs << " " << outputs;
        multiply(x, weight, out, machine, false, bias);
        EXPECT_LT((out - expected).abs().max().item<double>(), 5e-4) << inputs << " " << outputs;
      }
}

TEST(Linear, ReadsAndWritesColumnsOfWiderArraysAndNothingElse) {
  const at::Tensor wide_x = at::randn({9, 50}, at::kFloat), weight = at::randn({11, 20}, at::kFloat);
  at::Tensor wide_out = at::full({9, 30}, 7.0f);
  at::Tensor out = wide_out.slice(1, 3, 14);
  const at::Tensor x = wide_x.slice(1, 10, 30);
  multiply(x, weight, out, this_machine());
  EXPECT_LT((out - at::matmul(x, weight.t())).abs().max().item<double>(), 1e-4);
  EXPECT_TRUE(wide_out.slice(1, 0, 3).eq(7.0f).all().item<bool>());
  EXPECT_TRUE(wide_out.slice(1, 14).eq(7.0f).all().item<bool>());
}

TEST(Linear, ARowHasTheSameBitsInEveryBatchAndWithEveryNumberOfThreads) {
  const int threads = at::get_num_threads();
  for (const Machine machine : machines()) {
    const at::Tensor x = at::randn({301, 130}, at::kFloat), weight = at::randn({90, 130}, at::kFloat);
    const at::Tensor bias = at::randn({90}, at::kFloat);
    at::Tensor all = at::empty({301, 90}, at::kFloat);
    at::set_num_threads(1);
    multiply(x, weight, all, machine, false, bias);
    for (const int64_t rows : {1, 3, 4, 11, 64, 250}) {
      at::Tensor some = at::empty({rows, 90}, at::kFloat);
      at::set_num_threads(3);
      multiply(x.slice(0, 17, 17 + rows), weight, some, machine, false, bias);
      EXPECT_TRUE(some.equal(all.slice(0, 17, 17 + rows))) << rows;
    }
  }
  at::set_num_threads(threads);
}

}  // namespace
}  // namespace sluice::models
