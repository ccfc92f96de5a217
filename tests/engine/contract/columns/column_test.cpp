#include "engine/contract/columns/column.h"

#include <gtest/gtest.h>

#include <array>
#include <memory>

#include "base/error.h"

namespace sluice::engine::column_test {
namespace {

TEST(ColumnInForeignMemory, IsNotCopiedAndKeepsIt) {
  auto memory = std::make_shared<std::array<int64_t, 3>>(std::array<int64_t, 3>{4, 5, 6});
  const std::weak_ptr<void> left = memory;
  {
    const ColumnData column(DType::kInt64, 3, memory);
    memory.reset();
    EXPECT_EQ(column.entries<int64_t>()[2], 6);
    EXPECT_EQ(column.bytes(), 24);
    EXPECT_FALSE(left.expired());
  }
  EXPECT_TRUE(left.expired());
}

TEST(ColumnInForeignMemory, IsNotOfStringsNorBetweenEntries) {
  const auto memory = std::make_shared<std::array<int64_t, 3>>();
  EXPECT_THROW(ColumnData(DType::kString, 1, memory), InternalError);
  EXPECT_THROW(ColumnData(DType::kFloat32, 1, nullptr), InternalError);
  const std::shared_ptr<void> between(memory, reinterpret_cast<char*>(memory->data()) + 2);
  EXPECT_THROW(ColumnData(DType::kFloat32, 1, between), InternalError);
}

}  // namespace
}  // namespace sluice::engine::column_test
