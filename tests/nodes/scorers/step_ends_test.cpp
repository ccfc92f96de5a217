#include "nodes/scorers/step_ends.h"

#include <gmock/gmock.h>

#include "tests/nodes/tiny_model.h"
#include "tests/text/tokenizer_fixtures.h"

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

TEST_F(StepEndsTest, EmptyStepsDoNotCountWhereASeparatorTakesSeveralTokens) {
  EXPECT_THAT(ends("a;;;;b;;", ";;"), ElementsAre(2, 7));
  EXPECT_THAT(ends(";; ;;a", ";;"), ElementsAre(5));
}

TEST_F(StepEndsTest, ASeparatorMayTakeSeveralTokens) {
  EXPECT_THAT(ends("a;b;;c;;", ";;"), ElementsAre(4, 7));
  EXPECT_THAT(ends("a;;;b", ";;"), ElementsAre(2, 4));
}

TEST_F(StepEndsTest, ASpecialTokenMayBeTheSeparatorByItsWholeName) {
  EXPECT_THAT(ends("ab~c~", "<eos>"), ElementsAre(2, 4));
  EXPECT_THAT(ends("ab~c~", "eos"), ElementsAre(4));
}

// Llama 2 has a token for the byte of a line end, and a run of such tokens may become other characters.
TEST(StepEnds, AByteTokenSeparatesAtOnce) {
  const text::Tokenizer tokenizer = text::load_json(text::json::parse(R"({"model": {"type": "BPE", "byte_fallback": true,
      "merges": [], "vocab": {"a": 0, "<0x0A>": 1}}, "decoder": {"type": "Sequence", "decoders": [{"type": "ByteFallback"},
      {"type": "Fuse"}]}})"));
  EXPECT_THAT(step_ends(tokenizer, std::vector<int64_t>{0, 1, 0, 0, 1, 1, 0, 1}, "\n"), ElementsAre(1, 4, 7));
}

TEST_F(StepEndsTest, NoTextHasNoSteps) {
  EXPECT_THAT(ends(""), IsEmpty());
  EXPECT_THAT(ends("~"), IsEmpty());
}

}  // namespace
}  // namespace sluice::nodes::step_ends_test
