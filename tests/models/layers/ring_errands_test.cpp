#include "models/layers/ring_errands.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "base/numbers/random.h"

// Attention over all pairs of tokens, one by one, against what the ranks of a ring do.
namespace sluice::models::ring_errands_test {
namespace {

using Pair = std::pair<int64_t, int64_t>;  // a query and a key

struct Case {
  std::vector<int64_t> offsets{0};
  int64_t window = 0;
  int ring = 2, head_ranks = 1;

  Segment segment(int block) const {
    return {.tokens = offsets.back(), .place = block * head_ranks, .ranks = ring * head_ranks, .ring = ring};
  }
  bool sees(int64_t query, int64_t key) const {
    const auto sample_of = [&](int64_t token) { return std::ranges::upper_bound(offsets, token) - offsets.begin(); };
    return key <= query && sample_of(query) == sample_of(key) && (window == 0 || query - key < window);
  }
};

Case random_case(RandomStream& random) {
  Case result;
  result.ring = 2 + static_cast<int>(random.below(6)), result.head_ranks = 1 + static_cast<int>(random.below(3));
  for (uint64_t samples = 1 + random.below(5); samples > 0; --samples)
    result.offsets.push_back(result.offsets.back() + static_cast<int64_t>(random.below(40)));
  if (random.below(2) == 0) result.window = 1 + static_cast<int64_t>(random.below(30));
  return result;
}

void add_pairs(const Case& c, TokenRange queries, TokenRange keys, std::multiset<Pair>& pairs) {
  for (int64_t query = queries.begin; query < queries.end; ++query)
    for (int64_t key = keys.begin; key < keys.end; ++key)
      if (c.sees(query, key)) pairs.emplace(query, key);
}

TEST(RingErrands, HaveEveryPairOfTokensOnce) {
  RandomStream random(3, 0);
  for (int round = 0; round < 500; ++round) {
    const Case c = random_case(random);
    std::multiset<Pair> done, expected;
    add_pairs(c, {0, c.offsets.back()}, {0, c.offsets.back()}, expected);
    for (int block = 0; block < c.ring; ++block) {
      const Segment segment = c.segment(block);
      add_pairs(c, segment.block_of(block), segment.block_of(block), done);
      for (int step = 1; step <= c.ring / 2; ++step) {
        const Errand own = step_of(segment, c.offsets, c.window, step).own;
        if (!own.any()) continue;
        add_pairs(c, own.queries, own.keys, done);
        for (int64_t query = own.queries.begin; query < own.queries.end; ++query)
          ASSERT_TRUE(c.sees(query, own.keys.end - 1)) << "a query without a key";
      }
    }
    ASSERT_EQ(done, expected) << round;
  }
}

TEST(RingErrands, AreTheSameForWhoComputesAndWhoHelps) {
  RandomStream random(4, 0);
  for (int round = 0; round < 200; ++round) {
    const Case c = random_case(random);
    for (int step = 1; step <= c.ring / 2; ++step) {
      std::vector<RingStep> steps;
      for (int block = 0; block < c.ring; ++block) steps.push_back(step_of(c.segment(block), c.offsets, c.window, step));
      for (const RingStep& one : steps) {
        ASSERT_EQ(one.any, steps[0].any);
        ASSERT_EQ(one.any_returns, steps[0].any_returns);
        if (!one.own.any()) continue;
        const Errand& helped = steps[static_cast<size_t>(one.own.helped_by())].helped;
        ASSERT_EQ(helped.queries, one.own.queries);
        ASSERT_EQ(helped.keys, one.own.keys);
        ASSERT_EQ(helped.computed_by(), one.own.computed_by());
      }
    }
  }
}

// Of one long sample.
TEST(RingErrands, AreAsMuchForAllRanks) {
  for (const int ring : {2, 3, 4, 5, 8}) {
    const Case c{.offsets = {0, 240 * ring}, .ring = ring};
    std::vector<int64_t> scores;
    for (int block = 0; block < ring; ++block) {
      int64_t& sum = scores.emplace_back(0);
      for (int step = 1; step <= ring / 2; ++step) {
        const Errand own = step_of(c.segment(block), c.offsets, 0, step).own;
        sum += own.queries.size() * own.keys.size();
      }
    }
    EXPECT_EQ(*std::ranges::min_element(scores), *std::ranges::max_element(scores)) << ring;
  }
}

}  // namespace
}  // namespace sluice::models::ring_errands_test
