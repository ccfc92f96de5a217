#include "nodes/forward/values.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/nodes/tiny_model.h"

namespace sluice::nodes::values_test {
namespace {

using ::testing::FloatNear;
using testing::floats;
using testing::group_of;
using testing::mixed_groups;
using ::testing::Pointwise;
using testing::run_node;
using testing::tiny_model;
using testing::TinyFolder;

TEST(Values, AreTheHeadOnTheHiddenStateBeforeEachAction) {
  const TinyFolder folder;
  const auto critic = tiny_model(folder.path(), {.value_head = true});
  const std::vector<int64_t> tokens{5, 17, 42, 8, 11};

  const at::NoGradGuard no_gradient;
  const std::vector<int64_t> offsets{0, 5};
  const at::Tensor hidden = critic->forward().transformer().hidden_states(at::tensor(tokens), offsets).contiguous();  // [5,H]
  const float* head = critic->forward().transformer().weights().value_head.const_data_ptr<float>();
  std::vector<float> expected;
  for (const int64_t before : {2, 3}) {
    double value = 0;
    for (int64_t h = 0; h < TinyFolder::kHidden; ++h)
      value += hidden.const_data_ptr<float>()[before * TinyFolder::kHidden + h] * head[h];
    expected.push_back(static_cast<float>(value));
  }
  EXPECT_GT(std::abs(expected[0] - expected[1]), 1e-3);  // a shift by one would be seen

  const auto out = run_node<Values>(ValuesParams{.model = "critic"}, {{"critic", critic}}, {group_of({{tokens, 2}})});
  EXPECT_THAT(floats(out, "values"), Pointwise(FloatNear(1e-5f), expected));
}

TEST(Values, DoNotDependOnHowGroupsArePacked) {
  const TinyFolder folder;
  const testing::Models models{{"critic", tiny_model(folder.path(), {.value_head = true})}};
  const auto packed = run_node<Values>(ValuesParams{.model = "critic"}, models, mixed_groups());
  const auto single = run_node<Values>(ValuesParams{.model = "critic"}, models, mixed_groups(), {1, 1, 1, 1});
  EXPECT_THAT(floats(packed, "values"), Pointwise(FloatNear(1e-5f), floats(single, "values")));
}

}  // namespace
}  // namespace sluice::nodes::values_test
