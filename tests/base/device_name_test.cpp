#include "base/device_name.h"

#include <gtest/gtest.h>

namespace sluice::device_name_test {
namespace {

TEST(DeviceNames, AreAKindAndANumber) {
  const auto name = device_name("cuda:12");
  ASSERT_TRUE(name);
  EXPECT_EQ(name->kind, "cuda");
  EXPECT_EQ(name->number, 12);
}

TEST(DeviceNames, OfTheCpuAreNone) {
  EXPECT_FALSE(device_name("cpu"));
  EXPECT_FALSE(device_name("cpu:1"));
}

TEST(DeviceNames, OtherTextsAreNone) {
  for (const char* text : {"", ":", ":0", "cuda", "cuda:", "cuda:-1", "cuda:x", "cuda:1000", "cuda:128", "cuda:0 "})
    EXPECT_FALSE(device_name(text)) << text;
}

}  // namespace
}  // namespace sluice::device_name_test
