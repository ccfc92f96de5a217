#include "nodes/rewards/shape_score.h"

#include <cmath>

#include "base/error.h"
#include "nodes/columns/columns.h"
#include "tests/nodes/node_harness.h"
#include "tests/nodes/saved_state.h"
#include "tests/temporary_folder.h"

namespace sluice::nodes::shape_score_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr engine::Column<float> kRawScore{"raw_score", engine::Extent::kSample};

std::vector<GroupOf> groups_of(const std::vector<float>& scores) {
  std::vector<GroupOf> groups;
  for (const float score : scores) groups.push_back({Sample().value(kRawScore, score)});
  return groups;
}

std::vector<float> shaped(const ShapeScoreParams& params, const std::vector<float>& scores) {
  return NodeHarness<ShapeScore>(params).run(groups_of(scores))[columns::kScore];
}

// One node over several iterations.
class Iterations {
 public:
  explicit Iterations(const ShapeScoreParams& params) : params_(params) {
    resources_.metrics = &metrics_;
    resources_.totals = &totals_;
    node_.emplace(params_, resources_);
  }

  std::vector<float> run(const std::vector<float>& scores) {
    engine::Layout layout;
    for (size_t s = 0; s < scores.size(); ++s) layout.add_sample(1, 0), layout.end_group();
    const std::vector<int64_t> indices(scores.size(), 0);
    const engine::Readers readers{.columns = {1, 1}, .tokens = 1};
    engine::ByteMeter meter;
    engine::BatchState state(0, 0, layout, indices, std::vector<engine::Credit>(scores.size()), readers, meter);
    engine::ColumnData data(engine::DType::kFloat32, scores.size());
    std::ranges::copy(scores, data.entries<float>().begin());
    state.store(0, data);
    engine::MicroBatch batch(state, slots_, reads_, writes_);

    node_->begin_iteration({});
    if (params_.normalize == ScoreScale::kPast) {
      node_->process(batch);
    } else {
      node_->gather(0, std::span(&batch, 1));
      totals_.combine_alone();
      node_->process_iteration(0, std::span(&batch, 1));
    }
    totals_.combine_alone();
    node_->end_iteration({});
    const auto written = batch.written(columns::kScore);
    return {written.begin(), written.end()};
  }

  ShapeScore& node() { return *node_; }

 private:
  const engine::ColumnSpecs slots_{kRawScore.spec(), columns::kScore.spec()};
  const std::vector<int> reads_{0}, writes_{1};
  const ShapeScoreParams params_;
  engine::MetricsRecorder metrics_;
  engine::Totals totals_;
  engine::NodeResources resources_;
  std::optional<ShapeScore> node_;
};

TEST(ShapeScore, ScalesShiftsAndClipsInThisOrder) {
  EXPECT_THAT(shaped({.scale = 2, .offset = -1, .clip = 3}, {-4, 0, 1, 1.5, 9}), Near({-3, -1, 1, 2, 3}));
}

TEST(ShapeScore, RecordsHowManyWereClipped) {
  const auto out = NodeHarness<ShapeScore>({.clip = 3}).run(groups_of({-4, 0, 3, 9}));
  EXPECT_NEAR(out.metrics().at("reward/score_clipped"), 0.5, 1e-9);
}

// statistics.stdev([1, 2, 3, 6]) = 2.160246899
TEST(ShapeScore, DividesByTheDeviationOfTheIteration) {
  EXPECT_THAT(shaped({.normalize = ScoreScale::kIteration}, {1, 2, 3, 6}), Near({0.46291005, 0.9258201, 1.38873015, 2.77746030}));
  EXPECT_THAT(shaped({.normalize = ScoreScale::kIteration, .center = true}, {1, 2, 3, 6}),
              Near({-0.9258201, -0.46291005, 0, 1.38873015}));
}

// numpy.std([1, 2, 3, 6], ddof=1) = 2.160246899, of [1, 2, 3, 6, 10, 14] 5.0990195136 with mean 6.
TEST(ShapeScore, RunningStatisticsCountEveryIterationUpToThisOne) {
  Iterations node({.normalize = ScoreScale::kRunning, .center = true});
  EXPECT_THAT(node.run({1, 2, 3, 6}), Near({-0.9258201, -0.46291005, 0, 1.38873015}));
  EXPECT_THAT(node.run({10, 14}), Near({4 / 5.0990195136, 8 / 5.0990195136}));
}

TEST(ShapeScore, PastStatisticsBeginWithTheSecondIteration) {
  Iterations node({.normalize = ScoreScale::kPast, .center = true});
  EXPECT_THAT(node.run({1, 2, 3, 6}), Near({1, 2, 3, 6}));
  EXPECT_THAT(node.run({3, 14}), Near({0, 11 / 2.160246899}));
}

// Thirds are no binary fractions: what is not saved to the last bit shows.
TEST(ShapeScore, StatisticsGoOnToTheLastBit) {
  for (const ScoreScale scale : {ScoreScale::kRunning, ScoreScale::kPast}) {
    const ShapeScoreParams params{.normalize = scale, .center = true};
    const auto scores = [](int i) {
      return std::vector<float>{static_cast<float>(i) / 3, 1.1f * static_cast<float>(i * i), -0.7f};
    };
    Iterations whole(params);
    std::vector<std::vector<float>> shaped;
    for (int i = 0; i < 6; ++i) shaped.push_back(whole.run(scores(i)));
    for (int stop = 0; stop < 6; ++stop) {
      Iterations before(params), after(params);
      for (int i = 0; i < stop; ++i) before.run(scores(i));
      go_on(after.node(), state_of(before.node()));
      for (int i = stop; i < 6; ++i) EXPECT_EQ(after.run(scores(i)), shaped[static_cast<size_t>(i)]) << stop;
    }
  }
}

TEST(ShapeScore, IterationStatisticsForgetTheOthers) {
  Iterations node({.normalize = ScoreScale::kIteration});
  node.run({100, 200});
  EXPECT_THAT(node.run({1, 2, 3, 6}), Near({0.46291005, 0.9258201, 1.38873015, 2.77746030}));
}

TEST(ShapeScore, EqualScoresAreNotBlownUp) {
  EXPECT_THAT(shaped({.normalize = ScoreScale::kIteration}, {3, 3}), Near({3, 3}));
  EXPECT_THAT(shaped({.normalize = ScoreScale::kRunning, .center = true}, {3}), Near({0}));
  EXPECT_THAT(shaped({.normalize = ScoreScale::kRunning}, {}), IsEmpty());
}

TEST(ShapeScore, IsABarrierOnlyWhereItNeedsTheIteration) {
  const auto scope = [](ScoreScale normalize) {
    return NodeHarness<ShapeScore>({.normalize = normalize, .scale = 2}).needs().scope;
  };
  EXPECT_EQ(scope(ScoreScale::kNone), engine::Scope::kMicroBatch);
  EXPECT_EQ(scope(ScoreScale::kPast), engine::Scope::kMicroBatch);
  EXPECT_EQ(scope(ScoreScale::kRunning), engine::Scope::kIteration);
  EXPECT_EQ(scope(ScoreScale::kIteration), engine::Scope::kIteration);
}

TEST(ShapeScore, ScoreThatIsNotFiniteIsRefused) {
  EXPECT_THROW(shaped({.scale = 2}, {1, std::nanf("")}), UserError);
  EXPECT_THROW(shaped({.normalize = ScoreScale::kRunning}, {1, INFINITY}), UserError);
}

// statistics.stdev([1, 3]) = 1.41421356; the masked 50 changes neither it nor the mean.
TEST(ShapeScore, MaskedSamplesHaveNoPartInStatistics) {
  const auto sample = [](float score, float mask) { return Sample().value(kRawScore, score).actions(columns::kMask, {mask}); };
  const ShapeScoreParams params{.normalize = ScoreScale::kIteration, .center = true, .clip = 5};
  const auto out = NodeHarness<ShapeScore>(params).run({{sample(1, 1), sample(50, 0), sample(3, 1)}});
  EXPECT_THAT(out[columns::kScore], Near({-0.70710678, 5, 0.70710678}));
  EXPECT_NEAR(out.metrics().at("reward/score_norm_mean"), 2, 1e-9);
  EXPECT_NEAR(out.metrics().at("reward/score_norm_std"), 1.41421356, 1e-8);
  EXPECT_NEAR(out.metrics().at("reward/score_mean"), 0, 1e-6);
  EXPECT_EQ(out.metrics().at("reward/score_clipped"), 0);
}

TEST(ShapeScore, ScoreThatBecomesTooLargeNamesItsSample) {
  EXPECT_THAT(message_of<UserError>([] {
                shaped({.scale = 1e38}, {1, 40});
              }),
              HasSubstr("column 'score' would be 4e+39 for sample 0 of group 1"));
}

TEST(ShapeScore, RefusesSettingsThatDoNothing) {
  const auto problems = &NodeHarness<ShapeScore>::problems;
  EXPECT_THAT(problems({}), ElementsAre(HasSubstr("every score stays as it is")));
  EXPECT_THAT(problems({{"center", {true}}, {"scale", {2.0}}}), ElementsAre(HasSubstr("center has no effect")));
  EXPECT_THAT(problems({{"scale", {0.0}}}), ElementsAre(HasSubstr("makes all scores equal")));
  EXPECT_THAT(problems({{"clip", {1.0}}, {"reads", {std::string("score")}}}),
              ElementsAre(HasSubstr("is the column that is read")));
  EXPECT_THAT(problems({{"offset", {1e39}}}), ElementsAre(HasSubstr("offset must be a number from -1e+38 to 1e+38")));
  EXPECT_THAT(problems({{"normalize", {std::string("past")}}}), IsEmpty());
}

}  // namespace
}  // namespace sluice::nodes::shape_score_test
