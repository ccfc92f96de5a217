#include "models/memory/host_copy.h"

#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace sluice::models::host_copy_test {
namespace {

constexpr int64_t kFloats = (1 << 20) + 37;  // more than the ranges of two threads, and no round number

TEST(HostCopy, HoldsWhatTheBufferHeld) {
  const at::Tensor buffer = at::randn({kFloats}), before = buffer.clone();
  HostCopy copy(kFloats);
  EXPECT_EQ(copy.bytes(), 0);
  copy.copy({buffer.narrow(0, 0, 1000), buffer.narrow(0, 1000, kFloats - 1000)});
  buffer.fill_(1);
  EXPECT_TRUE(copy.tensor().equal(before));
  EXPECT_EQ(copy.bytes(), kFloats * 4);
}

TEST(HostCopy, UsesItsMemoryAgain) {
  HostCopy copy(kFloats);
  copy.copy({at::randn({kFloats})});
  const void* memory = copy.tensor().const_data_ptr();
  const at::Tensor second = at::randn({kFloats});
  copy.copy({second});
  EXPECT_EQ(copy.tensor().const_data_ptr(), memory);
  EXPECT_TRUE(copy.tensor().equal(second));
}

TEST(HostCopy, RefusesABufferOfAnotherLength) {
  HostCopy copy(4);
  EXPECT_THROW(copy.copy({at::randn({5})}), InternalError);
}

}  // namespace
}  // namespace sluice::models::host_copy_test
