#include "nodes/sinks/write_dataset.h"

#include "base/error.h"
#include "base/json/json.h"
#include "nodes/columns/columns.h"
#include "tests/nodes/node_harness.h"
#include "tests/temporary_folder.h"

namespace sluice::nodes::write_dataset_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Sample sample(const std::string& response, float score, float mask = 1) {
  return Sample().value(columns::kResponse, response).value(columns::kScore, score).actions(columns::kMask, {mask, 0.0f});
}

GroupOf group(std::initializer_list<Sample> samples, const std::string& messages = "") {
  return GroupOf(samples).value(columns::kPrompt, std::string("2+2=")).value(columns::kMessages, messages);
}

std::vector<Json> rows(const WriteDatasetParams& params, std::vector<GroupOf> groups, double* written = nullptr) {
  const TemporaryFolder folder;
  NodeHarness<WriteDataset> node(params);
  node.resources().run_folder.path = folder.path();
  const Output out = node.run(std::move(groups), {});
  if (written != nullptr) *written = out.metrics().at("data/rows_written");
  std::vector<Json> rows;
  std::istringstream lines(read_file(folder.path() / params.path));
  for (std::string line; std::getline(lines, line);) rows.push_back(Json::parse(line));
  return rows;
}

TEST(WriteDataset, ExamplesAreTheSamplesThatTheMaskKeeps) {
  double written = 0;
  EXPECT_THAT(rows({}, {group({sample("5", 0, 0), sample("4", 1)}), group({sample("3", 0, 0)})}, &written),
              ElementsAre(Json::parse(R"({"prompt": "2+2=", "completion": "4", "score": 1.0})")));
  EXPECT_EQ(written, 1);
}

TEST(WriteDataset, WithoutAMaskEachSampleStaysAlsoAnEmptyOne) {
  const auto unmasked = [](const char* text) { return Sample().value(columns::kResponse, std::string(text)); };
  const auto written = rows({}, {GroupOf{unmasked("4"), unmasked("")}.value(columns::kPrompt, std::string("2+2="))});
  EXPECT_THAT(written, ElementsAre(Json::parse(R"({"prompt": "2+2=", "completion": "4"})"),
                                   Json::parse(R"({"prompt": "2+2=", "completion": ""})")));
}

TEST(WriteDataset, PairIsTheBestAndTheWorstThatTheMaskKeeps) {
  const auto written =
      rows({.form = DatasetForm::kPairs},
           {group({sample("a", 0.5), sample("b", 9, 0), sample("c", 2), sample("d", -1), sample("e", 2), sample("f", -1)}),
            group({sample("g", 1), sample("h", 1)}), group({sample("i", 1), sample("j", 0, 0)})});
  EXPECT_THAT(written, ElementsAre(Json::parse(R"({"prompt": "2+2=", "chosen": "c", "rejected": "d", "chosen_score": 2.0,
                                                   "rejected_score": -1.0, "margin": 3.0})")));
}

TEST(WriteDataset, PromptOfMessagesIsMessagesAndSoAreTheAnswers) {
  const std::string messages = R"([{"role": "user", "content": "2+2?"}])";
  EXPECT_THAT(rows({}, {group({sample("4", 1)}, messages)}),
              ElementsAre(Json::parse(R"({"prompt": [{"role": "user", "content": "2+2?"}],
                                          "completion": [{"role": "assistant", "content": "4"}], "score": 1.0})")));
  const auto pairs = rows({.form = DatasetForm::kPairs}, {group({sample("4", 1), sample("5", 0)}, messages)});
  EXPECT_EQ(pairs.front()["rejected"], Json::parse(R"([{"role": "assistant", "content": "5"}])"));
}

TEST(WriteDataset, ScoreThatIsNotFiniteIsAnError) {
  EXPECT_THROW(rows({.form = DatasetForm::kPairs}, {group({sample("4", 1), sample("5", NAN)})}), UserError);
}

}  // namespace
}  // namespace sluice::nodes::write_dataset_test
