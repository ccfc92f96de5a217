#include "engine/ranks/parcels.h"

#include <gtest/gtest.h>

#include <string>

namespace sluice::engine::parcels_test {
namespace {

TEST(ParcelCredit, CountsColumnsAndWhatMayLieBetweenThem) {
  EXPECT_EQ(credit_bytes({}), 0);
  EXPECT_EQ(credit_bytes({.header = "four", .columns = {ColumnData(DType::kFloat32, 10), ColumnData(DType::kUint8, 3)}}),
            4 + 64 + 40 + 64 + 3);
}

TEST(ParcelCredit, CountsStringsAsTheyComeAndAsTheyStay) {
  ColumnData texts(DType::kString, 2);
  texts.entries<std::string>()[0] = std::string(100, 'a');
  const int64_t strings = texts.bytes(), on_the_way = 2 * 8 + 100;
  EXPECT_EQ(credit_bytes({.header = {}, .columns = {texts}}), 64 + strings + on_the_way);
}

TEST(ParcelKey, IsToldByNumberIterationAndEdge) {
  EXPECT_EQ(text_of(ParcelKey{"generate", 12, 7}), "micro-batch 7 of iteration 12 on edge 'generate'");
  EXPECT_EQ(text_of(ParcelKey{"actor", 12, 7, ParcelOf::kWeights, 3}), "piece 3 of bucket 7 of version 12 of 'actor'");
  EXPECT_EQ(text_of(ParcelKey{"actor", 12, 2, ParcelOf::kLanding}), "the memory of place 2 of 'actor'");
  EXPECT_EQ(text_of(ParcelKey{"actor", 12, 2, ParcelOf::kFree}), "word that rank 2 has room for version 12 of 'actor'");
  EXPECT_EQ(text_of(ParcelKey{"actor", 12, 2, ParcelOf::kShare}),
            "word that rank 2 has brought its part of version 12 of 'actor'");
  EXPECT_EQ(text_of(ParcelKey{"actor", 12, 2, ParcelOf::kAcknowledged}), "word that rank 2 has version 12 of 'actor'");
  EXPECT_EQ(text_of(ParcelKey{"actor", 12, 2, ParcelOf::kConfirmed}), "word of rank 2 that all have version 12 of 'actor'");
}

}  // namespace
}  // namespace sluice::engine::parcels_test
