#include <ATen/Context.h>
#include <gtest/gtest.h>

namespace sluice::models {
namespace {

// LibTorch seeds its generator from the machine's entropy: a test with a tight bound would fail once in a while.
class Seed final : public testing::Environment {
 public:
  void SetUp() override { at::manual_seed(17); }
};

const testing::Environment* const kSeed = testing::AddGlobalTestEnvironment(new Seed);

}  // namespace
}  // namespace sluice::models
