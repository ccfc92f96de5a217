#include "nodes/scorers/length_penalty.h"

#include "nodes/columns/columns.h"
#include "tests/nodes/node_harness.h"

namespace sluice::nodes::length_penalty_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr engine::Column<float> kLengthScore{"length_score", engine::Extent::kSample};

Output run_lengths(const LengthPenaltyParams& params, std::initializer_list<size_t> lengths) {
  std::vector<GroupOf> groups;
  for (const size_t length : lengths) groups.push_back({Sample().actions(columns::kValues, std::vector<float>(length))});
  return NodeHarness<LengthPenalty>(params).run(groups);
}

TEST(LengthPenalty, SoftOverlongFallsFromZeroToMinusOne) {
  const auto out = run_lengths({.max_tokens = 10, .cache_tokens = 4}, {0, 5, 6, 7, 8, 10, 11, 100});
  EXPECT_THAT(out[kLengthScore], Near({0, 0, 0, -0.25, -0.5, -1, -1, -1}));
  EXPECT_NEAR(out.metrics().at("reward/length_score_penalised"), 5.0 / 8, 1e-12);
}

TEST(LengthPenalty, LinearIsTheShareOfMaxTokens) {
  const auto out = run_lengths({.shape = PenaltyShape::kLinear, .max_tokens = 8}, {0, 2, 8, 12});
  EXPECT_THAT(out[kLengthScore], Near({0, -0.25, -1, -1.5}));
}

TEST(LengthPenalty, OnlyActionsCount) {
  Sample sample;
  sample.tokens(columns::kTokens, std::vector<int64_t>(20)).actions(columns::kValues, {0, 0});
  const auto out = NodeHarness<LengthPenalty>({.shape = PenaltyShape::kLinear, .max_tokens = 4}).run(sample);
  EXPECT_THAT(out[kLengthScore], Near({-0.5}));
}

TEST(LengthPenalty, RefusesSettingsThatDoNotFit) {
  const auto problems = [](std::vector<std::pair<std::string, engine::Value>> keys) {
    keys.push_back({"max_tokens", {int64_t{10}}});
    return NodeHarness<LengthPenalty>::problems(std::move(keys));
  };
  EXPECT_THAT(problems({}), ElementsAre(HasSubstr("needs cache_tokens")));
  EXPECT_THAT(problems({{"cache_tokens", {int64_t{11}}}}), ElementsAre(HasSubstr("above max_tokens")));
  EXPECT_THAT(problems({{"cache_tokens", {int64_t{5}}}, {"shape", {std::string("linear")}}}),
              ElementsAre(HasSubstr("no effect")));
  EXPECT_THAT(problems({{"cache_tokens", {int64_t{5}}}}), IsEmpty());
}

}  // namespace
}  // namespace sluice::nodes::length_penalty_test
