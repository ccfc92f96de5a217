#include "models/layers/feed_forward/expert_exchange.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <random>
#include <utility>
#include <vector>

#include "models/layers/feed_forward/routing.h"
#include "tests/models/segments_in_threads.h"

// Rows that are nothing but the number of their token, of random passes, routed at random: most of them to few experts.
namespace sluice::models::expert_exchange_test {
namespace {

using testing::SegmentsInThreads;

struct RandomPass {
  explicit RandomPass(uint64_t seed, int expert_ranks) : random(seed) {
    experts = {.count = expert_ranks * up_to(24), .size = 1};
    experts.per_token = std::min<int64_t>(experts.count, up_to(3));
    tokens = up_to(seed % 3 == 0 ? 5 : 3000);
    for (int64_t token = 0; token < tokens; ++token) {
      std::vector<int32_t> chosen;
      while (std::ssize(chosen) < experts.per_token) {
        const int64_t most = up_to(2) == 1 ? std::min<int64_t>(experts.count, 4) : experts.count;
        const auto expert = static_cast<int32_t>(up_to(most) - 1);
        if (std::ranges::find(chosen, expert) == chosen.end()) chosen.push_back(expert);
      }
      std::ranges::sort(chosen);
      all_chosen.insert(all_chosen.end(), chosen.begin(), chosen.end());
    }
  }

  int64_t up_to(int64_t most) { return 1 + static_cast<int64_t>(random() % static_cast<uint64_t>(most)); }

  std::mt19937_64 random;
  ExpertsConfig experts;
  int64_t tokens = 0;
  std::vector<int32_t> all_chosen;  // [tokens, per_token]
};

// Which rank has seen which token for which expert, in the order in which it has.
using Seen = std::map<int64_t, std::pair<int, std::vector<int64_t>>>;

class OneRank {
 public:
  OneRank(const RandomPass& pass, const Segment& segment)
      : pass_(pass),
        segment_(segment),
        entries_(segment.size() * pass.experts.per_token),
        places_(static_cast<size_t>(entries_)),
        first_(static_cast<size_t>(pass.experts.count) + 1),
        weights_(static_cast<size_t>(entries_)) {
    const int32_t* const chosen = pass.all_chosen.data() + segment.begin() * pass.experts.per_token;
    sort_by_expert(pass.experts, segment.size(), chosen, places_.data(), first_.data());
  }

  /// What comes back of a token is its number and the expert's.
  void run(std::mutex& mutex, Seen& seen) {
    const RoutedRows routed{places_.data(), first_.data(), weights_.data(), pass_.experts.per_token};
    const at::Tensor counts = at::full({segment_.expert_ranks, pass_.experts.count}, -1, at::kInt);
    ExpertExchange::exchange_counts(segment_, routed, counts);
    const ExpertExchange exchange(segment_, routed, counts);
    const std::vector<at::Tensor> sent{at::empty({segment_.expert_ranks * ExpertExchange::kRows, 1})},
        come{at::empty({ExpertExchange::kRows, 1})}, made{at::empty({ExpertExchange::kRows, 2})},
        back{at::full({entries_, 2}, -1.0F)};
    const auto fill = [&](const ExpertRows& rows, std::span<const at::Tensor> to) {
      for (int64_t row = 0; row < rows.count; ++row)
        to[0].mutable_data_ptr<float>()[row] = static_cast<float>(segment_.begin() + rows.token(row));
    };
    for (size_t round = 0; round < exchange.rounds(); ++round) {
      exchange.send(round, fill, sent, come);
      EXPECT_LE(exchange.pieces(round).size(), ExpertExchange::kPieces);
      for (const ExpertExchange::Piece& piece : exchange.pieces(round)) {
        EXPECT_GE(piece.expert, exchange.own().begin);
        EXPECT_LT(piece.expert, exchange.own().end);
        EXPECT_LE(piece.offset + piece.count, ExpertExchange::kRows);
        const std::lock_guard lock(mutex);
        auto& [place, tokens] = seen.try_emplace(key(piece.expert), segment_.place, std::vector<int64_t>()).first->second;
        EXPECT_EQ(place, segment_.place);
        EXPECT_EQ(std::ssize(tokens), piece.first);
        for (int64_t row = piece.offset; row < piece.offset + piece.count; ++row) {
          const float token = come[0].const_data_ptr<float>()[row];
          tokens.push_back(static_cast<int64_t>(token));
          made[0].mutable_data_ptr<float>()[2 * row] = token;
          made[0].mutable_data_ptr<float>()[2 * row + 1] = static_cast<float>(piece.expert);
        }
      }
      exchange.send_back(round, made, back);
    }
    for (int64_t expert = 0; expert < pass_.experts.count; ++expert) {
      for (int64_t entry = routed.begin_of(expert); entry < routed.end_of(expert); ++entry) {
        const float* const of = back[0].const_data_ptr<float>() + 2 * entry;
        EXPECT_EQ(of[0], static_cast<float>(segment_.begin() + routed.entries(entry, 1).token(0)));
        EXPECT_EQ(of[1], static_cast<float>(expert));
      }
    }
  }

  // Of an expert of the group.
  int64_t key(int64_t expert) const { return segment_.first_of_experts() * pass_.experts.count + expert; }

 private:
  const RandomPass& pass_;
  const Segment segment_;
  const int64_t entries_;
  std::vector<int32_t> places_, first_;
  std::vector<float> weights_;
};

TEST(ExpertExchange, BringsEachRowToItsOwnerInTheOrderOfTheTokensAndBack) {
  for (const auto& [ranks, expert_ranks] : std::vector<std::pair<int, int>>{{2, 2}, {4, 4}, {4, 2}, {6, 3}}) {
    for (uint64_t seed = 0; seed < 6; ++seed) {
      const RandomPass pass(seed, expert_ranks);
      std::mutex mutex;
      Seen seen;
      SegmentsInThreads(ranks, 1, expert_ranks).on_all(pass.tokens, [&](const Segment& segment) {
        OneRank(pass, segment).run(mutex, seen);
      });
      size_t all = 0;
      for (const auto& [expert, by] : seen) {
        EXPECT_TRUE(std::ranges::is_sorted(by.second)) << seed;
        all += by.second.size();
      }
      EXPECT_EQ(all, pass.all_chosen.size()) << seed;
    }
  }
}

}  // namespace
}  // namespace sluice::models::expert_exchange_test
