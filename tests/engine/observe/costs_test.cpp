#include "engine/observe/costs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace sluice::engine::costs_test {
namespace {

using ::testing::HasSubstr;

Costs some_costs() {
  Costs costs{.pipeline = "ppo", .iterations = 12, .seconds = 3.25, .gap_us = 4.5, .nodes = {}, .lengths = {}};
  costs.nodes["generate"] = {.threads = 2, .per_step_us = 100, .per_sampled_token_us = 1.0 / 3, .per_prompt_token_us = 0.25};
  costs.nodes["keep"] = {.per_batch_us = 7, .kept_share = 0.6};
  costs.nodes["train"] = {.per_token_us = 11, .per_iteration_us = 900, .per_checkpoint_us = 20000};
  costs.lengths = {{.first_iteration = 0, .prompt = {}, .response = {}}, {.first_iteration = 6, .prompt = {}, .response = {}}};
  for (Lengths& lengths : costs.lengths) {
    lengths.prompt.add(5, 3);
    lengths.response.add(1000 + lengths.first_iteration * 100, 7);
  }
  return costs;
}

TEST(Costs, AreReadAsTheyWereWritten) { EXPECT_EQ(parse_costs(costs_json(some_costs()), "costs.json"), some_costs()); }

TEST(Costs, LengthsBelongToTheIterationsFromTheirFirstOn) {
  const Costs costs = some_costs();
  EXPECT_EQ(&costs.lengths_of(0), &costs.lengths[0]);
  EXPECT_EQ(&costs.lengths_of(5), &costs.lengths[0]);
  EXPECT_EQ(&costs.lengths_of(6), &costs.lengths[1]);
  EXPECT_EQ(&costs.lengths_of(600), &costs.lengths[1]);
}

std::string refusal(const std::string& text) {
  try {
    parse_costs(text, "costs.json");
  } catch (const UserError& error) {
    return error.what();
  }
  return "accepted";
}

std::string with(const std::string& nodes,
                 const std::string& lengths = R"([{"first_iteration":0,"prompt":[[4,1]],"response":[[2,1]]}])") {
  return R"({"version":1,"nodes":)" + nodes + R"(,"lengths":)" + lengths + "}";
}

TEST(Costs, AFileThatIsWrongIsRefusedWithThePlace) {
  ASSERT_EQ(refusal(with("{}")), "accepted");
  EXPECT_THAT(refusal("{\"version\": 1,\n  oops"), HasSubstr("costs.json:2:3"));
  EXPECT_THAT(refusal("[]"), HasSubstr("costs.json: the file must be an object"));
  EXPECT_THAT(refusal(R"({"version":2})"), HasSubstr("version must be 1"));
  EXPECT_THAT(refusal(R"({"version":1})"), HasSubstr("nodes must be an object"));
  EXPECT_THAT(refusal(with(R"({"train":3})")), HasSubstr("nodes.train must be an object"));
  EXPECT_THAT(refusal(with(R"({"train":{"per_token_us":-1}})")), HasSubstr("nodes.train.per_token_us must be a number from 0"));
  EXPECT_THAT(refusal(with(R"({"train":{"per_token_us":"1"}})")), HasSubstr("nodes.train.per_token_us must be a number from 0"));
  EXPECT_THAT(refusal(with(R"({"train":{"per_tokens_us":1}})")), HasSubstr("did you mean per_token_us?"));
  EXPECT_THAT(refusal(with(R"({"train":{"threads":0}})")), HasSubstr("nodes.train.threads must be an integer from 1"));
  EXPECT_THAT(refusal(with(R"({"keep":{"kept_share":1.5}})")), HasSubstr("nodes.keep.kept_share must be a number from 0 to 1.0"));
  EXPECT_THAT(refusal(with("{}", "[]")), HasSubstr("lengths must be an array"));
  EXPECT_THAT(refusal(with("{}", R"([{"first_iteration":0,"prompt":[[4]],"response":[[2,1]]}])")),
              HasSubstr("lengths[0].prompt must hold pairs"));
  EXPECT_THAT(refusal(with("{}", R"([{"first_iteration":0,"prompt":[],"response":[[2,1]]}])")),
              HasSubstr("lengths[0].prompt must not be empty"));
  EXPECT_THAT(refusal(with("{}", R"([{"first_iteration":0,"prompt":[[4,99999999999]],"response":[[2,1]]}])")),
              HasSubstr("pairs"));
  EXPECT_THAT(refusal(with("{}", R"([{"first_iteration":3,"prompt":[[4,1]],"response":[[2,1]]},
                                     {"first_iteration":3,"prompt":[[4,1]],"response":[[2,1]]}])")),
              HasSubstr("lengths[1].first_iteration must ascend"));
}

TEST(Costs, OfARunThatWentOnBeginWithTheLengthsOfItsFirstIteration) {
  const Costs costs = parse_costs(with("{}", R"([{"first_iteration":3,"prompt":[[4,1]],"response":[[2,1]]}])"), "costs.json");
  EXPECT_EQ(costs.lengths_of(0), costs.lengths_of(3));
}

TEST(LengthHistogram, DrawsEveryLengthAsOftenAsItWasCounted) {
  LengthHistogram lengths;
  lengths.add(9, 1);
  lengths.add(3, 2);
  lengths.add(5, 1);
  EXPECT_EQ(lengths.at(0), 3);
  EXPECT_EQ(lengths.at(0.49), 3);
  EXPECT_EQ(lengths.at(0.5), 5);
  EXPECT_EQ(lengths.at(0.75), 9);
  EXPECT_EQ(lengths.at(0.9999), 9);
  EXPECT_DOUBLE_EQ(lengths.mean(), 5);
}

TEST(LengthHistogram, IsBoundedAndNearlyRight) {
  LengthHistogram lengths;
  for (int64_t length = 1; length < 100'000; ++length) lengths.add(length);
  EXPECT_LT(lengths.counts().size(), 128 + 64 * 10U);
  EXPECT_NEAR(static_cast<double>(lengths.at(0.5)), 50'000, 50'000 * 0.016);
  EXPECT_NEAR(lengths.mean(), 50'000, 50);
}

}  // namespace
}  // namespace sluice::engine::costs_test
