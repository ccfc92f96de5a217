#include "nodes/scorers/step_ends.h"

#include <gmock/gmock.h>

#include "tests/nodes/tiny_model.h"

namespace sluice::nodes::step_ends_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// One id a character; '~' stands for the end of sequence.
class StepEndsTest : public ::testing::Test {
 protected:
  std::vector<size_t> ends(const std::string& text, const std::string& separator = ".") {
    std::vector<int64_t> ids;
    for (const char c : text) ids.push_back(c == '~' ? 0 : c == ' ' ? 1 : c - 31);
    return step_ends(model_->text().tokenizer(), ids, separator);
  }

  testing::TinyFolder folder_;
  std::shared_ptr<LanguageModel> model_ = testing::tiny_model(folder_.path(), {});
};

TEST_F(StepEndsTest, AreTheSeparatorsAndTheLastToken) { EXPECT_THAT(ends("ab.c.de"), ElementsAre(2, 4, 6)); }

TEST_F(StepEndsTest, WhatFollowsTheLastSeparatorMustHaveContent) {
  EXPECT_THAT(ends("a.~"), ElementsAre(1));
  EXPECT_THAT(ends("a. ~"), ElementsAre(1));
  EXPECT_THAT(ends("a.b~"), ElementsAre(1, 3));
}

TEST_F(StepEndsTest, EmptyStepsDoNotCount) { EXPECT_THAT(ends(". a.. .b"), ElementsAre(3, 7)); }

TEST_F(StepEndsTest, ASeparatorMayTakeSeveralTokens) {
  EXPECT_THAT(ends("a;b;;c;;", ";;"), ElementsAre(4, 7));
  EXPECT_THAT(ends("a;;;b", ";;"), ElementsAre(2, 4));
}

TEST_F(StepEndsTest, ASpecialTokenMayBeTheSeparator) { EXPECT_THAT(ends("ab~c~", "<eos>"), ElementsAre(2, 4)); }

TEST_F(StepEndsTest, NoTextHasNoSteps) {
  EXPECT_THAT(ends(""), IsEmpty());
  EXPECT_THAT(ends("~"), IsEmpty());
}

}  // namespace
}  // namespace sluice::nodes::step_ends_test
