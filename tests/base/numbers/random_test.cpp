#include "base/numbers/random.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

namespace sluice::random_test {
namespace {

struct KnownAnswer {
  std::array<uint32_t, 4> counter;
  std::array<uint32_t, 2> key;
  std::array<uint32_t, 4> words;
};

// The three lines "philox4x32 10" of tests/kat_vectors of Random123, the authors' own library.
TEST(Philox, GivesThePublishedKnownAnswers) {
  const KnownAnswer answers[] = {
      {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
      {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
       {0xffffffff, 0xffffffff},
       {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
      {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
       {0xa4093822, 0x299f31d0},
       {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
  };
  for (const KnownAnswer& answer : answers) EXPECT_EQ(philox(answer.counter, answer.key), answer.words);
}

std::array<uint32_t, 8> first_words(RandomStream stream) {
  std::array<uint32_t, 8> words{};
  for (uint32_t& word : words) word = stream.next_bits();
  return words;
}

TEST(RandomStream, RepeatsForTheSameName) { EXPECT_EQ(first_words({7, 3, 2, 1}), first_words({7, 3, 2, 1})); }

TEST(RandomStream, ACopyContinuesWhereTheOriginalStood) {
  RandomStream stream(7, 3);
  stream.next_bits();
  EXPECT_EQ(first_words(stream), first_words(RandomStream(stream)));
}

TEST(RandomStream, IsAnotherForEachPartOfItsName) {
  std::set<std::array<uint32_t, 8>> seen;
  int streams = 0;
  for (const uint64_t seed : {uint64_t{0}, uint64_t{1}, uint64_t{1} << 32, ~uint64_t{0}}) {
    for (const uint64_t iteration : {uint64_t{0}, uint64_t{1}, uint64_t{1} << 32, uint64_t{3} << 32}) {
      for (uint32_t group = 0; group < 4; ++group) {
        for (uint32_t sample = 0; sample < 4; ++sample, ++streams) seen.insert(first_words({seed, iteration, group, sample}));
      }
    }
  }
  EXPECT_EQ(seen.size(), static_cast<size_t>(streams));
}

TEST(RandomStream, WordsDoNotRepeatFromBlockToBlock) {
  RandomStream stream(1, 0);
  std::set<uint32_t> seen;
  for (int i = 0; i < 4096; ++i) seen.insert(stream.next_bits());
  EXPECT_GT(seen.size(), 4090u);  // two of 4096 words are equal with probability 0.002
}

// Mean 1/2 and variance 1/12; the bounds are six standard errors.
TEST(RandomStream, UniformFillsTheUnitInterval) {
  RandomStream stream(11, 5);
  constexpr int kCount = 100000;
  double sum = 0, squares = 0, least = 1, most = 0;
  for (int i = 0; i < kCount; ++i) {
    const double x = stream.uniform();
    sum += x, squares += (x - 0.5) * (x - 0.5), least = std::min(least, x), most = std::max(most, x);
  }
  EXPECT_GE(least, 0.0);
  EXPECT_LT(most, 1.0);
  EXPECT_LT(least, 1e-3);
  EXPECT_GT(most, 1 - 1e-3);
  EXPECT_NEAR(sum / kCount, 0.5, 6 * std::sqrt(1.0 / 12 / kCount));
  EXPECT_NEAR(squares / kCount, 1.0 / 12, 6 * std::sqrt(1.0 / 180 / kCount));
}

TEST(RandomStream, UniformHas53Bits) {
  RandomStream stream(2, 0);
  bool last_bit_seen = false;
  for (int i = 0; i < 100; ++i) {
    const double scaled = stream.uniform() * 0x1.0p53;
    EXPECT_EQ(scaled, std::floor(scaled));
    last_bit_seen |= std::fmod(scaled, 2.0) == 1.0;
  }
  EXPECT_TRUE(last_bit_seen);
}

// Chi-squared with 9 degrees of freedom stays below 27.9 with probability 0.999.
TEST(RandomStream, BelowIsEvenAndInRange) {
  RandomStream stream(3, 0);
  std::map<uint64_t, int> counts;
  for (int i = 0; i < 10000; ++i) ++counts[stream.below(10)];
  ASSERT_EQ(counts.rbegin()->first, 9u);
  double chi_squared = 0;
  for (const auto& [value, count] : counts) chi_squared += (count - 1000.0) * (count - 1000.0) / 1000.0;
  EXPECT_LT(chi_squared, 27.9);
  EXPECT_EQ(stream.below(1), 0u);
}

// 3 * 2^62 leaves a quarter of all words over: without rejection the lowest third would come up half of the time.
TEST(RandomStream, BelowIsEvenForBoundsNearTheWordSize) {
  RandomStream stream(4, 0);
  const uint64_t bound = uint64_t{3} << 62;
  int lowest_third = 0;
  for (int i = 0; i < 9000; ++i) lowest_third += stream.below(bound) < bound / 3;
  EXPECT_NEAR(lowest_third, 3000, 6 * std::sqrt(9000 * (1.0 / 3) * (2.0 / 3)));
}

TEST(RandomStream, NormalHasMeanZeroVarianceOneAndNormalTails) {
  RandomStream stream(5, 0);
  constexpr int kCount = 100000;
  double sum = 0, squares = 0;
  int beyond_two = 0;
  for (int i = 0; i < kCount; ++i) {
    const double x = stream.normal();
    ASSERT_TRUE(std::isfinite(x));
    sum += x, squares += x * x, beyond_two += std::abs(x) > 2;
  }
  EXPECT_NEAR(sum / kCount, 0, 6 / std::sqrt(kCount));
  EXPECT_NEAR(squares / kCount, 1, 6 * std::sqrt(2.0 / kCount));
  const double tail = std::erfc(std::sqrt(2.0));  // P(|x| > 2)
  EXPECT_NEAR(beyond_two, kCount * tail, 6 * std::sqrt(kCount * tail * (1 - tail)));
}

TEST(RandomStream, SkippedNormalsAreThoseThatWouldHaveCome) {
  RandomStream taken(7, 3), skipped(7, 3);
  for (int i = 0; i < 5; ++i) taken.normal();
  skipped.normal();
  skipped.skip_normals(4);
  EXPECT_EQ(skipped.normal(), taken.normal());
}

}  // namespace
}  // namespace sluice::random_test
