#include "models/devices/device_named.h"

#include <gtest/gtest.h>

namespace sluice::models::device_named_test {
namespace {

TEST(Device, HasAName) {
  EXPECT_TRUE(device_named("cpu")->is_cpu());
  const auto gpu = device_named("cuda:12");
  ASSERT_TRUE(gpu);
  EXPECT_TRUE(gpu->is_cuda());
  EXPECT_EQ(gpu->index(), 12);
}

TEST(Device, OtherNamesAreNone) {
  for (const char* name :
       {"", "gpu", "cuda", "cuda:", "cuda:-1", "cuda:x", "cuda:1000", "cuda:128", "CPU", "cpu:1", "cuda:0 ", "other:0"})
    EXPECT_FALSE(device_named(name)) << name;
}

}  // namespace
}  // namespace sluice::models::device_named_test
