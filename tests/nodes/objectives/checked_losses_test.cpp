#include "nodes/objectives/checked_losses.h"

#include <ATen/ops/ones.h>
#include <gmock/gmock.h>

#include "base/error.h"

namespace sluice::nodes::checked_losses_test {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(CheckedLosses, HaveOneEntryForEachAction) {
  const at::Tensor logprobs = at::ones({3});
  check_losses(logprobs, logprobs, 3, "action");
  EXPECT_THAT(
      [&] {
        check_losses(at::ones({1, 3}), logprobs, 3, "action");
      },
      ThrowsMessage<UserError>(HasSubstr("a tensor of shape [1, 3] for 3 losses, one for each action")));
  EXPECT_THAT([&] { check_losses({}, logprobs, 3, "pair"); }, ThrowsMessage<UserError>(HasSubstr("gives nothing for 3 losses")));
}

// Where a plugin detaches them the run would train nothing, and look well.
TEST(CheckedLosses, DependOnWhatIsTrained) {
  const at::Tensor logprobs = at::ones({3}).set_requires_grad(true);
  check_losses(logprobs.mul(2), logprobs, 3, "action");
  EXPECT_THAT([&] { check_losses(logprobs.detach(), logprobs, 3, "action"); },
              ThrowsMessage<UserError>(HasSubstr("do not depend on the log-probabilities")));
}

}  // namespace
}  // namespace sluice::nodes::checked_losses_test
