#include "nodes/forward/logprobs.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/nodes/tiny_model.h"

namespace sluice::nodes::logprobs_test {
namespace {

using ::testing::FloatNear;
using testing::floats;
using testing::group_of;
using testing::mixed_groups;
using ::testing::Pointwise;
using testing::run_node;
using testing::tiny_model;
using testing::TinyFolder;

TEST(Logprobs, AreTheLogSoftmaxOfTheLogitsBeforeEachAction) {
  const TinyFolder folder;
  const auto model = tiny_model(folder.path(), {});
  const std::vector<int64_t> tokens{5, 17, 42, 8, 11, 90};

  const at::NoGradGuard no_gradient;
  const std::vector<int64_t> offsets{0, 6};
  const at::Tensor hidden = model->forward().transformer().hidden_states(at::tensor(tokens), offsets);  // [6,H]
  const at::Tensor logits =
      at::matmul(hidden, model->forward().transformer().weights().head.t()).to(at::kDouble).div(0.7);  // [6,V]
  const at::Tensor all = at::log_softmax(logits, -1);                                                  // [6,V]
  std::vector<float> expected;
  for (const int64_t action : {3, 4, 5})
    expected.push_back(all[action - 1][tokens[static_cast<size_t>(action)]].item().toFloat());

  const auto out =
      run_node<Logprobs>(LogprobsParams{.model = "m", .temperature = 0.7}, {{"m", model}}, {group_of({{tokens, 3}})});
  EXPECT_THAT(floats(out, "reference_logprobs"), Pointwise(FloatNear(1e-5f), expected));
}

TEST(Logprobs, DoNotDependOnHowGroupsArePacked) {
  const TinyFolder folder;
  const testing::Models models{{"m", tiny_model(folder.path(), {})}};
  const auto packed = run_node<Logprobs>(LogprobsParams{.model = "m"}, models, mixed_groups());
  const auto single = run_node<Logprobs>(LogprobsParams{.model = "m"}, models, mixed_groups(), {1, 1, 1, 1});
  EXPECT_THAT(floats(packed, "reference_logprobs"), Pointwise(FloatNear(1e-5f), floats(single, "reference_logprobs")));
}

TEST(Logprobs, GoIntoTheColumnThatWritesNames) {
  const TinyFolder folder;
  const auto out = run_node<Logprobs>(LogprobsParams{.model = "m", .writes = "old_logprobs"},
                                      {{"m", tiny_model(folder.path(), {})}}, mixed_groups());
  EXPECT_EQ(floats(out, "old_logprobs").size(), 3u + 1 + 5 + 1 + 4 + 2 + 2);
}

TEST(Logprobs, AMicroBatchWithoutActionsHasAnEmptyColumn) {
  const TinyFolder folder;
  const auto out =
      run_node<Logprobs>(LogprobsParams{.model = "m"}, {{"m", tiny_model(folder.path(), {})}}, {group_of({{{1, 2}, 0}})});
  EXPECT_TRUE(floats(out, "reference_logprobs").empty());
}

}  // namespace
}  // namespace sluice::nodes::logprobs_test
