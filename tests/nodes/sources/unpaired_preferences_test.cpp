#include "nodes/sources/unpaired_preferences.h"

#include <gmock/gmock.h>

#include "base/error.h"
#include "base/files/file.h"
#include "nodes/columns/columns.h"
#include "tests/nodes/saved_state.h"
#include "tests/nodes/tiny_model.h"

namespace sluice::nodes::unpaired_preferences_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The tokenizer of the tiny model has one id a character: '0' is 17, 'a' is 66, a space 1, the end of sequence 0.
class UnpairedPreferencesTest : public ::testing::Test {
 protected:
  void SetUp() override { resources_.models["actor"] = testing::tiny_model(folder_.path(), {}); }

  UnpairedPreferencesParams params(int64_t groups_per_iteration = 3) const {
    UnpairedPreferencesParams params;
    params.path = {folder_.path() / "data.jsonl"};
    params.model = "actor";
    params.shuffle = false;
    params.max_tokens = 8;
    params.groups_per_iteration = groups_per_iteration;
    return params;
  }

  UnpairedPreferences open(const std::string& text, const UnpairedPreferencesParams& params) {
    write_file_atomically(params.path.front(), text);
    return UnpairedPreferences(params, resources_);
  }

  // The groups of one iteration.
  static std::vector<engine::Group> groups_of(UnpairedPreferences& source, int64_t count) {
    std::vector<engine::Group> groups;
    for (int64_t index = 0; index < count; ++index) {
      engine::Group group;
      group.index = index;
      if (source.next_group(group)) groups.push_back(std::move(group));
    }
    return groups;
  }

  std::string error(const std::string& text, const UnpairedPreferencesParams& params) {
    try {
      open(text, params);
    } catch (const UserError& error) {
      return error.what();
    }
    return "no error";
  }

  testing::TinyFolder folder_;
  engine::NodeResources resources_;
};

constexpr const char* kRows =
    "{\"prompt\": \"0\", \"completion\": \"a\", \"label\": true}\n"
    "{\"prompt\": \"11\", \"completion\": \"bb\", \"label\": false}\n"
    "{\"prompt\": \"2\", \"completion\": \"ccc\", \"label\": 1}\n"
    "{\"prompt\": \"3\", \"completion\": \"d\", \"label\": 0}\n";

std::vector<int64_t> tokens_of(const engine::Group& group, size_t sample) {
  const auto all = group.read(columns::kTokens);
  const engine::Range range = group.layout.tokens_by_sample()[sample];
  return {all.begin() + static_cast<std::ptrdiff_t>(range.begin), all.begin() + static_cast<std::ptrdiff_t>(range.end)};
}

TEST_F(UnpairedPreferencesTest, AGroupIsARowAndItsPromptWithTheCompletionOfTheNextOne) {
  UnpairedPreferences source = open(kRows, params());
  const std::vector<engine::Group> groups = groups_of(source, 3);
  EXPECT_THAT(tokens_of(groups[0], 0), ElementsAre(17, 66, 0));
  EXPECT_THAT(tokens_of(groups[0], 1), ElementsAre(17, 67, 67, 0));
  EXPECT_THAT(groups[0].layout.action_tokens, ElementsAre(1, 2, 4, 5, 6));
  EXPECT_THAT(groups[0].layout.group_offsets, ElementsAre(0, 2));
  EXPECT_THAT(groups[0].read(columns::kScore), ElementsAre(1, 0));
  EXPECT_EQ(groups[1].read(columns::kPrompt)[0], "11");
  EXPECT_THAT(tokens_of(groups[1], 1), ElementsAre(18, 18, 68, 68, 68, 0));
  EXPECT_THAT(groups[1].read(columns::kScore), ElementsAre(0, 0));
  EXPECT_THAT(groups[2].read(columns::kScore), ElementsAre(1, 0));
}

TEST_F(UnpairedPreferencesTest, TheLastRowOfAnIterationGetsTheCompletionOfItsFirst) {
  UnpairedPreferences source = open(kRows, params());
  EXPECT_THAT(tokens_of(groups_of(source, 3)[2], 1), ElementsAre(19, 66, 0));
  const std::vector<engine::Group> second = groups_of(source, 3);  // rows 3, 0, 1
  EXPECT_THAT(tokens_of(second[0], 1), ElementsAre(20, 66, 0));
  EXPECT_THAT(tokens_of(second[2], 1), ElementsAre(18, 18, 69, 0));
}

TEST_F(UnpairedPreferencesTest, WhereTheDataEndsTheLastRowGetsTheFirstOfItsIterationToo) {
  UnpairedPreferencesParams once = params();
  once.epochs = 1;
  UnpairedPreferences source = open(kRows, once);
  groups_of(source, 2);
  const std::vector<engine::Group> rest = groups_of(source, 3);  // rows 2 and 3
  ASSERT_EQ(rest.size(), 2u);
  EXPECT_THAT(tokens_of(rest[1], 1), ElementsAre(20, 68, 68, 68, 0));
}

TEST_F(UnpairedPreferencesTest, AMismatchedSampleIsCutOffAtTheLongestThatARowMayBe) {
  UnpairedPreferences source = open(
      "{\"prompt\": \"000000\", \"completion\": \"a\", \"label\": true}\n"
      "{\"prompt\": \"1\", \"completion\": \"bcdefg\", \"label\": true}\n",
      params(2));
  const std::vector<engine::Group> groups = groups_of(source, 2);
  EXPECT_THAT(tokens_of(groups[0], 1), ElementsAre(17, 17, 17, 17, 17, 17, 67, 68));
  EXPECT_THAT(groups[0].layout.action_offsets, ElementsAre(0, 2, 4));
}

TEST_F(UnpairedPreferencesTest, ItGoesOnWhereItWas) {
  UnpairedPreferences source = open(kRows, params()), other = open(kRows, params());
  groups_of(source, 3);
  go_on(other, state_of(source));
  EXPECT_EQ(tokens_of(groups_of(other, 1)[0], 1), tokens_of(groups_of(source, 1)[0], 1));
}

TEST_F(UnpairedPreferencesTest, WhatCannotBeLearnedIsShownWithItsLine) {
  EXPECT_THAT(error("{\"prompt\": \"0\", \"completion\": \"a\", \"label\": \"good\"}\n", params()), HasSubstr("data.jsonl:1"));
  EXPECT_THAT(error("{\"prompt\": \"0\", \"completion\": \"abcdefgh\", \"label\": true}\n", params()),
              HasSubstr("the example has 10 tokens, max_tokens is 8"));
  EXPECT_THAT(error(std::string(kRows) + "{\"prompt\": [{\"role\": \"user\", \"content\": \"1\"}], \"completion\": [{\"role\": "
                                         "\"assistant\", \"content\": \"2\"}], \"label\": true}\n",
                    params()),
              HasSubstr("data.jsonl:5:1: error: of this row and the first one is a text and one a conversation"));
}

TEST_F(UnpairedPreferencesTest, StatesItsWorstCase) {
  const auto needs = testing::needs_of<UnpairedPreferences>(params(4));
  EXPECT_EQ(needs.groups_per_iteration, 4);
  EXPECT_EQ(needs.samples_per_group, 2);
  EXPECT_EQ(needs.worst_sample_tokens, 8);
}

}  // namespace
}  // namespace sluice::nodes::unpaired_preferences_test
