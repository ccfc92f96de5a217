#include "engine/plan/antichain.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "base/numbers/random.h"

namespace sluice::engine::antichain_test {
namespace {

using Order = std::vector<std::vector<bool>>;  // order[a][b]: a precedes b

int64_t heaviest(const std::vector<int64_t>& weights, const Order& order) {
  return heaviest_antichain(weights, [&](size_t a, size_t b) { return static_cast<bool>(order[a][b]); });
}

// Tries every subset.
int64_t heaviest_subset(const std::vector<int64_t>& weights, const Order& order) {
  int64_t best = 0;
  for (unsigned subset = 0; subset < 1u << weights.size(); ++subset) {
    int64_t sum = 0;
    for (size_t a = 0; a < weights.size(); ++a) {
      if (!(subset >> a & 1)) continue;
      sum += weights[a];
      for (size_t b = 0; b < weights.size(); ++b) {
        if (subset >> b & 1 && order[a][b]) sum = std::numeric_limits<int64_t>::min() / 2;
      }
    }
    best = std::max(best, sum);
  }
  return best;
}

Order random_order(size_t elements, uint64_t density, RandomStream& random) {
  Order order(elements, std::vector<bool>(elements));
  for (size_t b = 0; b < elements; ++b) {
    for (size_t a = 0; a < b; ++a) {
      if (random.below(10) >= density) continue;
      order[a][b] = true;
      for (size_t before = 0; before < a; ++before) order[before][b] = order[before][b] || order[before][a];
    }
  }
  return order;
}

TEST(Antichain, OfAChainIsItsHeaviestElement) {
  EXPECT_EQ(heaviest({3, 7, 5}, {{false, true, true}, {false, false, true}, {false, false, false}}), 7);
}

TEST(Antichain, OfUnrelatedElementsIsAllOfThem) { EXPECT_EQ(heaviest({3, 7}, {{false, false}, {false, false}}), 10); }

TEST(Antichain, OfNothingIsNothing) { EXPECT_EQ(heaviest({}, {}), 0); }

TEST(Antichain, DoesNotWrapAround) {
  const int64_t most = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(heaviest({most, most}, {{false, false}, {false, false}}), most);
}

TEST(Antichain, IsTheHeaviestOfAllSubsets) {
  for (uint64_t seed = 0; seed < 600; ++seed) {
    RandomStream random(seed, 0);
    const size_t elements = 1 + random.below(9);
    const Order order = random_order(elements, 1 + random.below(8), random);
    std::vector<int64_t> weights;
    for (size_t i = 0; i < elements; ++i) weights.push_back(static_cast<int64_t>(random.below(9)));
    EXPECT_EQ(heaviest(weights, order), heaviest_subset(weights, order)) << seed;
  }
}

}  // namespace
}  // namespace sluice::engine::antichain_test
