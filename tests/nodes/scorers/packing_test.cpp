// What a scorer says of a sample does not depend on what it was packed with.
#include "nodes/rewards/combine_scores.h"
#include "nodes/rewards/mask_samples.h"
#include "nodes/rewards/shape_score.h"
#include "nodes/scorers/exact_match.h"
#include "nodes/scorers/json/json_schema.h"
#include "nodes/scorers/length_penalty.h"
#include "nodes/scorers/math/multiple_choice.h"
#include "nodes/scorers/math/numeric_match.h"
#include "nodes/scorers/regex_match.h"
#include "tests/nodes/scorers/text_groups.h"
#include "tests/temporary_folder.h"

namespace sluice::nodes::packing_test {
namespace {

constexpr engine::Column<float> kRawScore{"raw_score", engine::Extent::kSample};
constexpr engine::Column<float> kLengthScore{"length_score", engine::Extent::kSample};

// Groups of 1 to 4 samples of 0 to 6 actions; responses, scores and endings of every kind.
std::vector<GroupOf> groups(const std::string& label) {
  const std::vector<std::string> responses{"5", "B", "{}", "\\boxed{5}", "the answer is (B)", "", "#### 5", "5 of 7", "\xff"};
  std::vector<GroupOf> groups;
  size_t n = 0;
  const auto sample = [&] {
    Sample made;
    made.actions(columns::kValues, std::vector<float>(n % 7)).value(columns::kResponse, responses[n % responses.size()]);
    made.value(columns::kScore, static_cast<float>(n % 5) / 3).value(kRawScore, static_cast<float>(n * n % 11) / 7);
    made.value(columns::kFinish, static_cast<uint8_t>(n % 2));
    ++n;
    return made;
  };
  for (int round = 0; round < 3; ++round) {
    groups.push_back({sample(), sample(), sample(), sample()});
    groups.push_back({sample()});
    groups.push_back({sample(), sample()});
  }
  for (GroupOf& group : groups) group.value(columns::kLabel, label);
  return groups;
}

template <class Node, class T>
void expect_same_in_every_packing(const typename NodeHarness<Node>::Params& params, const engine::Column<T>& column,
                                  const std::string& label = "5") {
  const NodeHarness<Node> node(params);
  const std::vector<GroupOf> all = groups(label);
  const Output together = node.run(all);
  for (const std::vector<size_t>& packing : {std::vector<size_t>(9, 1), {2, 3, 4}, {8, 1}}) {
    const Output apart = node.run(all, packing);
    EXPECT_EQ(apart[column], together[column]);
    EXPECT_EQ(apart.metrics().size(), together.metrics().size());
    for (const auto& [name, value] : together.metrics()) EXPECT_NEAR(apart.metrics().at(name), value, 1e-12) << name;
  }
}

RegexMatchParams pattern() {
  RegexMatchParams params;
  params.pattern = "5";
  return params;
}

TEST(Packing, ChangesNoScoreOfATextScorer) {
  expect_same_in_every_packing<ExactMatch>({}, columns::kScore);
  expect_same_in_every_packing<NumericMatch>({}, columns::kScore);
  expect_same_in_every_packing<MultipleChoice>({}, columns::kScore, "B");
  expect_same_in_every_packing<RegexMatch>(pattern(), columns::kScore);
  const TemporaryFolder folder;
  JsonSchemaParams schema;
  schema.schema = folder.write("any.json", "{\"type\": \"object\"}");
  expect_same_in_every_packing<JsonSchema>(schema, columns::kScore);
}

TEST(Packing, ChangesNoPenaltyOfALength) {
  expect_same_in_every_packing<LengthPenalty>({.max_tokens = 5, .cache_tokens = 3}, kLengthScore);
}

TEST(Packing, ChangesNoCombinedScore) {
  expect_same_in_every_packing<CombineScores>({{.scores = {"score", "raw_score"}, .weights = {0.3, 0.7}}, "length_score"},
                                              kLengthScore);
}

TEST(Packing, ChangesNoShapedScore) {
  for (const ScoreScale normalize : {ScoreScale::kNone, ScoreScale::kPast, ScoreScale::kRunning, ScoreScale::kIteration}) {
    expect_same_in_every_packing<ShapeScore>(
        {.reads = "raw_score", .writes = "length_score", .normalize = normalize, .scale = 3, .clip = 2}, kLengthScore);
  }
}

TEST(Packing, ChangesNoMask) {
  expect_same_in_every_packing<MaskSamples>({.truncated = true, .best_of = 2, .least_score = 0.3, .most_tokens = 5},
                                            columns::kMask);
}

}  // namespace
}  // namespace sluice::nodes::packing_test
