#include "models/cuda/device.h"

#include <gtest/gtest.h>

namespace sluice::models::device_test {
namespace {

// 128 and more do not fit the number of a device of LibTorch.
TEST(Device, NoMachineHasTheLastGpu) {
  const auto missing = missing_gpu(127);
  ASSERT_TRUE(missing);
  EXPECT_FALSE(missing->what.empty());
  EXPECT_FALSE(missing->help.empty());
}

}  // namespace
}  // namespace sluice::models::device_test
