#include <ATen/Context.h>
#include <gtest/gtest.h>

namespace sluice::tests {
namespace {

// LibTorch seeds its generator from the machine's entropy: a test with a tight bound would fail once in a while. What one test
// draws does not depend on those that ran before it, nor on which of them a filter leaves out.
class Seed final : public testing::EmptyTestEventListener {
 public:
  void OnTestStart(const testing::TestInfo&) override { at::manual_seed(17); }
};

const bool kSeeded = (testing::UnitTest::GetInstance()->listeners().Append(new Seed), true);

}  // namespace
}  // namespace sluice::tests
