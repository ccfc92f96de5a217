#include "nodes/advantages/gae.h"

#include <cmath>

#include "base/error.h"
#include "nodes/columns/columns.h"
#include "tests/nodes/node_harness.h"
#include "tests/nodes/reference_cases.h"
#include "tests/temporary_folder.h"

namespace sluice::nodes::gae_test {
namespace {

using ::testing::HasSubstr;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

Sample sample(std::vector<float> rewards, std::vector<float> values) {
  return Sample().actions(columns::kTokenRewards, std::move(rewards)).actions(columns::kValues, std::move(values));
}

GaeParams with(double discount, double lambda, Whitening whiten = Whitening::kNone) {
  GaeParams params;
  params.discount = discount;
  params.lambda = lambda;
  params.whiten = whiten;
  return params;
}

GaeParams whitening(double lambda = 0.95) { return with(1, lambda, Whitening::kIteration); }

Output run_case(const Json& entry) {
  const NodeHarness<Gae> gae(with(entry["gamma"], entry["lambda"]));
  return gae.run(sample(entry["token_rewards"].get<std::vector<float>>(), entry["values"].get<std::vector<float>>()));
}

TEST(Gae, AgreesWithNemoRlWhenLambdaIsZero) {
  const auto entry = reference_case("gae_td_lambda0");
  if (!entry) GTEST_SKIP() << "no test data";
  EXPECT_THAT(run_case(*entry)[columns::kAdvantages], Near((*entry)["expect"]["advantages"].get<std::vector<double>>()));
}

TEST(Gae, AgreesWithSkyRlOnReturns) {
  const auto entry = reference_case("gae_returns_g1_l1");
  if (!entry) GTEST_SKIP() << "no test data";
  EXPECT_THAT(run_case(*entry)[columns::kReturns], Near((*entry)["expect"]["returns"].get<std::vector<double>>()));
}

// In the reference a masked position has no effect; here it simply has no entry. Expected by hand with l = 0.99 * 0.95 = 0.9405:
// errors 0.098, 0.196, 0.095, 0.5 and a[t] = error[t] + l * a[t + 1].
TEST(Gae, TextThatWasNotSampledLeavesNoGap) {
  const NodeHarness<Gae> gae(with(0.99, 0.95));
  const auto out = gae.run(sample({0, 0, 0, 1}, {0.1f, 0.2f, 0.4f, 0.5f}));
  EXPECT_THAT(out[columns::kAdvantages], Near({0.7823296, 0.7276232, 0.56525, 0.5}));
}

TEST(Gae, ReturnIsMonteCarloWhenLambdaIsOne) {
  const NodeHarness<Gae> gae(with(0.5, 1.0));
  EXPECT_THAT(gae.run(sample({1, 2, 4}, {7, -3, 100}))[columns::kReturns], Near({3, 4, 4}));
}

TEST(Gae, SamplesOfOneMicroBatchAreIndependent) {
  const NodeHarness<Gae> gae(with(1.0, 1.0));
  const auto out = gae.run({GroupOf{sample({1, 1}, {0, 0}), sample({}, {})}, GroupOf{sample({5}, {2})}});
  EXPECT_THAT(out[columns::kAdvantages], Near({2, 1, 3}));
  EXPECT_THAT(out[columns::kReturns], Near({2, 1, 5}));
}

TEST(Gae, RewardOrValueThatIsNotFiniteIsNamed) {
  const auto failure = [](const Sample& wrong) {
    return message_of<UserError>([&] { NodeHarness<Gae>().run({GroupOf{sample({1}, {0}), wrong}}); });
  };
  EXPECT_THAT(failure(sample({0, kNan, 1}, {0, 0, 0})), HasSubstr("'token_rewards' is nan for action 1 of sample 1 of group 0"));
  EXPECT_THAT(failure(sample({0}, {-INFINITY})), HasSubstr("'values' is infinite for action 0 of sample 1 of group 0"));
}

TEST(Gae, NoActionsAtAllIsFine) {
  const NodeHarness<Gae> gae(whitening());
  EXPECT_TRUE(gae.run(sample({}, {}))[columns::kAdvantages].empty());
}

TEST(Gae, WhiteningUnderAMaskAgreesWithSkyRl) {
  const auto entry = reference_case("gae_whitened_masked");
  if (!entry) GTEST_SKIP() << "no test data";
  const auto numbers = [&](const char* key) { return (*entry)[key].get<std::vector<float>>(); };
  const NodeHarness<Gae> gae(whitening((*entry)["lambda"]));
  const auto out = gae.run(sample(numbers("token_rewards"), numbers("values")).actions(columns::kMask, numbers("mask")));
  EXPECT_THAT(out[columns::kAdvantages], Near((*entry)["expect"]["advantages"].get<std::vector<double>>(), 1e-4));
  EXPECT_THAT(out[columns::kReturns], Near((*entry)["expect"]["returns"].get<std::vector<double>>()));
}

TEST(Gae, SkippingAGapAgreesWithNemoRl) {
  const auto entry = reference_case("gae_gap_carry_forward");
  if (!entry) GTEST_SKIP() << "no test data";
  GaeParams params = with((*entry)["gamma"], (*entry)["lambda"]);
  const auto values = (*entry)["values"].get<std::vector<float>>();
  const auto mask = (*entry)["mask"].get<std::vector<float>>();
  params.masked_actions = MaskedActions::kSkipped;
  const auto out = NodeHarness<Gae>(params).run(sample({0, 0, 0, 0, 1}, values).actions(columns::kMask, mask));
  EXPECT_THAT(out[columns::kAdvantages], Near({0.7823296, 0.7276232, 0, 0.56525, 0.5}));  // see TextThatWasNotSampledLeavesNoGap
}

TEST(Gae, WhitenedAdvantageOfASkippedActionIsZero) {
  GaeParams params = whitening(1.0);
  params.masked_actions = MaskedActions::kSkipped;
  const auto out = NodeHarness<Gae>(params).run(sample({1, 9, 2}, {0, 7, 0}).actions(columns::kMask, {1.0f, 0.0f, 1.0f}));
  EXPECT_THAT(out[columns::kAdvantages], Near({0.7071068, 0, -0.7071068}));  // of 3 and 2
}

TEST(Gae, NanUnderAMaskIsSkippedInAnyCase) {
  const auto out = NodeHarness<Gae>(with(1, 1)).run(sample({1, kNan, 2}, {0, 0, 0}).actions(columns::kMask, {1.0f, 0.0f, 1.0f}));
  EXPECT_THAT(out[columns::kAdvantages], Near({3, 0, 2}));
  EXPECT_NEAR(out.metrics().at("advantage/return_mean"), 2.5, 1e-6);
}

TEST(Gae, MetricsOfNothingAreNotRecorded) {
  EXPECT_TRUE(NodeHarness<Gae>().run(sample({}, {})).metrics().empty());
  EXPECT_TRUE(NodeHarness<Gae>(whitening()).run(sample({1}, {0}).actions(columns::kMask, {0.0f})).metrics().empty());
}

TEST(Gae, WhiteningDoesNotDependOnTheMicroBatching) {
  const NodeHarness<Gae> gae(whitening());
  const std::vector<GroupOf> groups{GroupOf{sample({1, 2}, {0, 0})}, GroupOf{sample({-4}, {1})},
                                    GroupOf{sample({9, 0, 3}, {1, 2, 3})}};
  EXPECT_EQ(gae.run(groups)[columns::kAdvantages], gae.run(groups, {1, 1, 1})[columns::kAdvantages]);
}

TEST(Gae, WhiteningOfEqualAdvantagesGivesZero) {
  const NodeHarness<Gae> gae(whitening());
  EXPECT_THAT(gae.run({GroupOf{sample({2}, {1}), sample({2}, {1})}})[columns::kAdvantages], Near({0, 0}));
  EXPECT_THAT(gae.run(sample({2}, {1}))[columns::kAdvantages], Near({0}));
}

TEST(Gae, IsABarrierOnlyWhenItWhitens) {
  EXPECT_EQ(NodeHarness<Gae>().needs().scope, engine::Scope::kMicroBatch);
  EXPECT_EQ(NodeHarness<Gae>(whitening()).needs().scope, engine::Scope::kIteration);
}

TEST(Gae, RefusesADiscountAboveOne) { EXPECT_EQ(NodeHarness<Gae>::problems({{"discount", {1.5}}}).size(), 1u); }

}  // namespace
}  // namespace sluice::nodes::gae_test
