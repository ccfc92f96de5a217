#include "nodes/sinks/write_jsonl.h"

#include <unistd.h>

#include <cmath>

#include "base/error.h"
#include "base/json/json.h"
#include "nodes/columns/columns.h"
#include "tests/nodes/node_harness.h"
#include "tests/nodes/saved_state.h"

namespace sluice::nodes::write_jsonl_test {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class WriteJsonlTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("sluice-write-" + std::to_string(::getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  fs::path folder_;
};

Sample sample(std::string response, float score) {
  return Sample()
      .value(columns::kResponse, std::move(response))
      .value(columns::kScore, score)
      .actions(columns::kValues, std::vector<float>{0.1f, score});
}

std::vector<GroupOf> two_groups() {
  return {GroupOf{sample("4", 1), sample("say \"5\"\n", 0)}.value(columns::kPrompt, std::string("2 + 2")),
          GroupOf{sample("\xff", NAN)}.value(columns::kPrompt, std::string("1 + 1"))};
}

TEST_F(WriteJsonlTest, OneLineASampleInTheOrderOfTheFields) {
  NodeHarness<WriteJsonl> node;
  node.resources().run_folder.path = folder_;
  node.run(two_groups(), {1, 1});
  EXPECT_EQ(read_file(folder_ / "samples.jsonl"),
            "{\"iteration\":0,\"group\":0,\"sample\":0,\"prompt\":\"2 + 2\",\"response\":\"4\",\"score\":1.0}\n"
            "{\"iteration\":0,\"group\":0,\"sample\":1,\"prompt\":\"2 + 2\",\"response\":\"say \\\"5\\\"\\n\",\"score\":0.0}\n"
            "{\"iteration\":0,\"group\":1,\"sample\":0,\"prompt\":\"1 + 1\",\"response\":\"\xEF\xBF\xBD\",\"score\":\"nan\"}\n");
}

TEST_F(WriteJsonlTest, ActionColumnsAreListsInTheDigitsOfFloat32) {
  NodeHarness<WriteJsonl> node({.fields = {"values"}});
  node.resources().run_folder.path = folder_;
  node.run({GroupOf{sample("4", 1)}});
  EXPECT_EQ(read_file(folder_ / "samples.jsonl"), "{\"iteration\":0,\"group\":0,\"sample\":0,\"values\":[0.1,1.0]}\n");
}

// What a run does that goes on: the file is cut to the saved length before the node is made.
TEST_F(WriteJsonlTest, ACutFileGoesOnWithoutGapOrRepetition) {
  const auto made = [&] {
    engine::NodeResources resources;
    resources.run_folder.path = folder_;
    return std::make_unique<WriteJsonl>(WriteJsonlParams{.path = "samples.jsonl", .fields = {"score"}}, resources);
  };
  const auto write = [&](engine::Node& node, float score) {
    engine::Registry registry;
    registry.add<WriteJsonl>();
    engine::NodeType type = registry.nodes().begin()->second;
    const auto params = std::make_shared<WriteJsonlParams>(WriteJsonlParams{.fields = {"score"}});
    type.make = [&](const void*, engine::NodeResources&) { return std::make_unique<ForwardTo>(node); };
    engine::try_node({.type = &type,
                      .params = params,
                      .resources = {},
                      .groups = {GroupOf{sample("", score)}.built()},
                      .groups_per_batch = {}});
  };
  engine::NodeState state;
  {
    const auto node = made();
    write(*node, 1);
    state = state_of(*node);
    write(*node, 2);  // after the checkpoint
  }
  ASSERT_EQ(state.files.size(), 1u);
  EXPECT_EQ(state.files.begin()->first, "samples.jsonl");
  cut_file(folder_ / "samples.jsonl", state.files.at("samples.jsonl"));
  const auto node = made();
  go_on(*node, state);
  EXPECT_EQ(state_of(*node), state);
  write(*node, 3);
  EXPECT_EQ(
      read_file(folder_ / "samples.jsonl"),
      "{\"iteration\":0,\"group\":0,\"sample\":0,\"score\":1.0}\n{\"iteration\":0,\"group\":0,\"sample\":0,\"score\":3.0}\n");
}

TEST_F(WriteJsonlTest, LinesOfAnEarlierRunStay) {
  NodeHarness<WriteJsonl> node({.fields = {"score"}});
  node.resources().run_folder.path = folder_;
  node.run({GroupOf{sample("4", 1)}});
  const auto once = fs::file_size(folder_ / "samples.jsonl");
  node.run({GroupOf{sample("4", 1)}});
  EXPECT_EQ(fs::file_size(folder_ / "samples.jsonl"), 2 * once);
}

TEST_F(WriteJsonlTest, FullDiskNamesThePath) {
  if (!fs::exists("/dev/full")) GTEST_SKIP() << "no /dev/full";
  fs::create_symlink("/dev/full", folder_ / "samples.jsonl");
  NodeHarness<WriteJsonl> node;
  node.resources().run_folder.path = folder_;
  try {
    node.run(two_groups());
    FAIL() << "nothing was thrown";
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(), HasSubstr((folder_ / "samples.jsonl").string()));
  }
}

// Such as one of a plugin: its type is that of whoever writes it.
TEST_F(WriteJsonlTest, WritesColumnsThatNoBuiltinNodeKnows) {
  const engine::Column<int64_t> kSteps{"steps_taken", engine::Extent::kSample};
  NodeHarness<WriteJsonl> node({.fields = {"steps_taken"}});
  node.resources().run_folder.path = folder_;
  node.run({GroupOf{Sample().value(kSteps, int64_t{7})}});
  EXPECT_EQ(read_file(folder_ / "samples.jsonl"), "{\"iteration\":0,\"group\":0,\"sample\":0,\"steps_taken\":7}\n");
}

TEST_F(WriteJsonlTest, ReadsTheColumnsOfItsFields) {
  const NodeHarness<WriteJsonl> node({.fields = {"label", "values"}});
  EXPECT_THAT(node.needs().reads_any, ElementsAre("label", "values"));
}

}  // namespace
}  // namespace sluice::nodes::write_jsonl_test
