#include "models/memory/sparse_buffer.h"

#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

namespace sluice::models::sparse_buffer_test {
namespace {

constexpr int64_t kFloats = 1 << 20, kPage = 1024;  // floats of a page

TEST(SparseBuffer, TakesMemoryWhereItWasWritten) {
  SparseBuffer buffer(kFloats);
  EXPECT_EQ(buffer.resident_bytes(), 0);
  buffer.tensor().narrow(0, 100 * kPage, 3 * kPage).fill_(1);
  EXPECT_EQ(buffer.resident_bytes(), 3 * kPage * 4);
  EXPECT_EQ(buffer.tensor().sum().item<float>(), 3 * kPage);
}

// What shares a page with something else stays.
TEST(SparseBuffer, GivesWholePagesBack) {
  SparseBuffer buffer(kFloats);
  buffer.tensor().narrow(0, 0, 8 * kPage).fill_(1);
  buffer.give_back(kPage / 2, 5 * kPage + 1);
  EXPECT_EQ(buffer.resident_bytes(), 4 * kPage * 4);
  EXPECT_EQ(buffer.tensor().narrow(0, 0, kPage).sum().item<float>(), kPage);
  EXPECT_EQ(buffer.tensor().narrow(0, kPage, 4 * kPage).abs().max().item<float>(), 0);
  EXPECT_EQ(buffer.tensor().narrow(0, 5 * kPage, 3 * kPage).sum().item<float>(), 3 * kPage);
}

TEST(SparseBuffer, KnowsWhereNobodyHasWritten) {
  SparseBuffer buffer(kFloats);
  buffer.tensor().narrow(0, 2 * kPage + 5, 1).fill_(1);
  EXPECT_TRUE(buffer.holds(2 * kPage, 3 * kPage));
  EXPECT_TRUE(buffer.holds(0, 2 * kPage + 1));  // touches the page
  EXPECT_FALSE(buffer.holds(0, 2 * kPage));
  EXPECT_FALSE(buffer.holds(3 * kPage + 7, kFloats));
  EXPECT_FALSE(buffer.holds(2 * kPage + 5, 2 * kPage + 5));
  buffer.give_back(2 * kPage, 3 * kPage);
  EXPECT_FALSE(buffer.holds(0, kFloats));
}

TEST(SparseBuffer, MayBeEmpty) {
  SparseBuffer buffer(0);
  buffer.give_back(0, 0);
  EXPECT_EQ(buffer.resident_bytes(), 0);
  EXPECT_FALSE(buffer.holds(0, 0));
}

}  // namespace
}  // namespace sluice::models::sparse_buffer_test
