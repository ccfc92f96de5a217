#include "nodes/objectives/key_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace sluice::nodes::key_search_test {
namespace {

using Keys = std::vector<uint32_t>;

// In parts, as ranks and micro-batches have them.
std::optional<uint32_t> searched(const std::vector<Keys>& parts, const KeyReached& reached) {
  KeysBelow found;
  for (int look = 0; look < kSearchLooks; ++look) {
    std::vector<int64_t> of_all;
    for (const Keys& part : parts) {
      std::vector<int64_t> counts;
      count_keys(look, found, part, counts);
      of_all.resize(std::max(of_all.size(), counts.size()));
      for (size_t i = 0; i < counts.size(); ++i) of_all[i] += counts[i];
    }
    found = narrowed(look, found, of_all, reached);
  }
  return key_found(with_search({}, 0, found), 0);
}

uint32_t key_of(float value) { return std::bit_cast<uint32_t>(value); }

std::vector<Keys> in_parts(const Keys& keys, std::mt19937& random) {
  std::vector<Keys> parts(std::uniform_int_distribution<size_t>(1, 5)(random));
  for (const uint32_t key : keys) parts[std::uniform_int_distribution<size_t>(0, parts.size() - 1)(random)].push_back(key);
  return parts;
}

// Few different bits, so that many keys are equal or differ in the last look alone.
Keys random_keys(std::mt19937& random) {
  Keys keys(std::uniform_int_distribution<size_t>(1, 60)(random));
  const uint32_t bits = std::uniform_int_distribution<uint32_t>(0, 2)(random) == 0 ? 0xFFFFFFFFU : 0x80200C03U;
  for (uint32_t& key : keys) key = static_cast<uint32_t>(random()) & bits;
  return keys;
}

TEST(KeySearch, FindsTheKeyThatASortFinds) {
  std::mt19937 random(3);
  for (int round = 0; round < 300; ++round) {
    Keys keys = random_keys(random);
    const auto wanted = std::uniform_int_distribution<size_t>(1, keys.size() + 1)(random);
    const auto found =
        searched(in_parts(keys, random), [&](double count, double) { return count >= static_cast<double>(wanted); });
    std::ranges::sort(keys);
    if (wanted > keys.size())
      EXPECT_FALSE(found);
    else
      EXPECT_EQ(found, keys[wanted - 1]);
  }
}

TEST(KeySearch, FindsWhereTheMeanOfTheValuesGetsTooLarge) {
  std::mt19937 random(4);
  std::lognormal_distribution<float> values(-3, 2);
  for (int round = 0; round < 300; ++round) {
    std::vector<float> all(std::uniform_int_distribution<size_t>(0, 60)(random));
    Keys keys;
    for (float& value : all) keys.push_back(key_of(value = values(random)));
    const double threshold = values(random);
    const auto found = searched(in_parts(keys, random), [&](double count, double sum) { return sum > threshold * count; });
    std::ranges::sort(all);
    std::optional<uint32_t> expected;
    double sum = 0;
    for (size_t i = 0; i < all.size() && !expected; ++i) {
      sum += all[i];
      if (sum > threshold * static_cast<double>(i + 1)) expected = key_of(all[i]);
    }
    EXPECT_EQ(found, expected);
  }
}

TEST(KeySearch, SumsTheValuesBelowTheKey) {
  const std::vector<float> values{0, 1e-42f, 0.25f, 3, 3.5f};
  Keys keys;
  for (const float value : values) keys.push_back(key_of(value));
  KeysBelow found;
  for (int look = 0; look < kSearchLooks; ++look) {
    std::vector<int64_t> counts;
    count_keys(look, found, keys, counts);
    found = narrowed(look, found, counts, [](double count, double) { return count == 5; });
  }
  EXPECT_EQ(found.first, key_of(3.5f));
  EXPECT_EQ(found.count, 4);
  EXPECT_DOUBLE_EQ(found.sum, static_cast<double>(1e-42f) + 3.25);
}

TEST(KeySearch, KeysOfFloatsAreInTheirOrder) {
  const std::vector<float> ascending{-1e30f, -2, -1e-40f, 0, 1e-40f, 0.5f, 7};
  for (const float value : ascending) EXPECT_EQ(float_of_ordered(ordered_key(value)), value);
  for (size_t i = 1; i < ascending.size(); ++i) EXPECT_LT(ordered_key(ascending[i - 1]), ordered_key(ascending[i]));
}

}  // namespace
}  // namespace sluice::nodes::key_search_test
