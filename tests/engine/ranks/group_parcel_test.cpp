#include "engine/ranks/group_parcel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/numbers/random.h"

namespace sluice::engine::group_parcel_test {
namespace {

constexpr Column<std::string> kPrompt{"prompt", Extent::kGroup};
constexpr Column<int64_t> kTokens{"tokens", Extent::kToken};
constexpr Column<float> kLogprobs{"logprobs", Extent::kAction};
constexpr Column<uint8_t> kFinish{"finish", Extent::kSample};

Group random_group(uint64_t seed) {
  RandomStream random(seed, 5);
  Group group{.iteration = static_cast<int64_t>(random.below(1000)), .index = static_cast<int64_t>(random.below(1000))};
  group.slot = static_cast<int>(random.below(8));
  for (uint64_t samples = random.below(4); samples > 0; --samples) {
    const auto actions = static_cast<int64_t>(random.below(50));
    group.layout.add_sample(1 + actions + static_cast<int64_t>(random.below(50)), actions);
  }
  group.layout.end_group();
  group.write(kPrompt)[0] = std::string(random.below(100), 'x') + '\0' + "\xff";
  for (int64_t& token : group.write(kTokens)) token = static_cast<int64_t>(random.below(150000));
  for (float& logprob : group.write(kLogprobs)) logprob = -static_cast<float>(random.uniform());
  for (uint8_t& finish : group.write(kFinish)) finish = static_cast<uint8_t>(random.below(3));
  return group;
}

template <class T>
void expect_same(const Column<T>& column, const Group& left, const Group& right) {
  EXPECT_TRUE(std::ranges::equal(left.read(column), right.read(column))) << column.name;
}

TEST(GroupParcel, IsTheGroupThatItWasMadeOf) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE(seed);
    const Group group = random_group(seed), back = group_of(parcel_of(group));
    EXPECT_EQ(back.iteration, group.iteration);
    EXPECT_EQ(back.index, group.index);
    EXPECT_EQ(back.slot, group.slot);
    EXPECT_EQ(back.layout.group_offsets, group.layout.group_offsets);
    EXPECT_EQ(back.layout.token_offsets, group.layout.token_offsets);
    EXPECT_EQ(back.layout.action_offsets, group.layout.action_offsets);
    EXPECT_EQ(back.layout.action_tokens, group.layout.action_tokens);
    ASSERT_EQ(back.columns.size(), group.columns.size());
    for (size_t c = 0; c < group.columns.size(); ++c) EXPECT_EQ(back.columns[c].spec, group.columns[c].spec);
    expect_same(kPrompt, group, back);
    expect_same(kTokens, group, back);
    expect_same(kLogprobs, group, back);
    expect_same(kFinish, group, back);
  }
}

// One number for each token would be too much for what only the receiver reads.
TEST(GroupParcel, OfAnAnswerWithAMillionActionsHasAShortHeader) {
  Group group;
  group.layout.add_sample(1'000'001, 1'000'000);
  group.layout.end_group();
  EXPECT_LT(parcel_of(group).header.size(), 1000u);
}

TEST(GroupParcel, WhatIsNoGroupIsRefused) {
  EXPECT_THROW(group_of({}), InternalError);
  Parcel parcel = parcel_of(random_group(1));
  parcel.header.pop_back();
  EXPECT_THROW(group_of(parcel), InternalError);
  parcel = parcel_of(random_group(1));
  parcel.columns[1] = parcel.columns[2];
  EXPECT_THROW(group_of(parcel), InternalError) << "a text that came as numbers";
}

}  // namespace
}  // namespace sluice::engine::group_parcel_test
