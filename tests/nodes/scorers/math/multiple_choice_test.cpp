#include "nodes/scorers/math/multiple_choice.h"

#include "base/error.h"
#include "tests/nodes/scorers/text_groups.h"

namespace sluice::nodes::multiple_choice_test {
namespace {

using ::testing::HasSubstr;

// The letter that a response chooses; 0 where it chooses none.
char chosen(const std::string& response, int64_t choices = 4) {
  MultipleChoiceParams params;
  params.choices = choices;
  for (char letter = 'A'; letter < 'A' + choices; ++letter) {
    if (score_of<MultipleChoice>(params, response, std::string(1, letter)) == 1) return letter;
  }
  return 0;
}

TEST(MultipleChoice, ResponseCanBeTheLetterAlone) {
  for (const char* response : {"B", "b", "(B)", "B.", " **B** ", "$B$", "b)", R"(\text{B})", "\"B\""}) {
    EXPECT_EQ(chosen(response), 'B') << response;
  }
}

TEST(MultipleChoice, LastBoxDecides) {
  EXPECT_EQ(chosen(R"(\boxed{A}, no: \boxed{B}. So A and C are wrong)"), 'B');
  EXPECT_EQ(chosen(R"(\boxed{\text{(B) Paris}})"), 'B');
  EXPECT_EQ(chosen(R"(\boxed{\textbf{b}})"), 'B');
  EXPECT_EQ(chosen(R"(The answer is B: \boxed{12})"), 0);
}

TEST(MultipleChoice, FindsTheSentenceThatNamesTheAnswer) {
  for (const char* response :
       {"The answer is (B).", "Answer: B", "**Answer:** B, since A is wrong and C too", "The correct answer is option B",
        "the answer is b", "the answer is (b), not A", "The answer to the question is B because A", "Final Answer: $B$",
        "A and C fail. B is correct. D", "B is the right one, not A", "Answer:\n\nB\n\nA is wrong",
        "the answer is A. No, the answer is B."}) {
    EXPECT_EQ(chosen(response), 'B') << response;
  }
}

TEST(MultipleChoice, ElseTakesTheLastLetterThatStandsAlone) {
  EXPECT_EQ(chosen("A? No. It must be B"), 'B');
  EXPECT_EQ(chosen("I choose (B)"), 'B');
  EXPECT_EQ(chosen("选B"), 'B');
  EXPECT_EQ(chosen("B. A dog is an animal."), 'B');  // an article
  EXPECT_EQ(chosen("B, as I said", 10), 'B');        // a pronoun
}

TEST(MultipleChoice, LettersThatAreRuledOutAreNotChosen) {
  for (const char* response :
       {"The answer is definitely not B.", "The answer isn't B", "The answer isn\u2019t B", "not (B)", "It cannot be B",
        "B is not the answer.", "I am sure that B is wrong.", "neither B nor C", "anything except option B"}) {
    EXPECT_EQ(chosen(response), 0) << response;
  }
  for (const char* response : {"The answer is not A but B", "It's B, not D", "Not A, so B",
                               "The answer is neither A nor C; it is B.", "B. Option C fails.", "I take B rather than A",
                               "A is wrong, C is clearly incorrect, D isn't it, and B?", "B, since **A** is not"}) {
    EXPECT_EQ(chosen(response), 'B') << response;
  }
}

TEST(MultipleChoice, SeveralLettersAreNoChoice) {
  for (const char* response : {"The answer is A or B", "The answer is A and B.", "A or B", "B, C or D", "Answer: **A** and **B**",
                               "The answer is A, B, and C", "A/B", "Options: A, B, C, D", "Either (A) or (B)"}) {
    EXPECT_EQ(chosen(response), 0) << response;
  }
  for (const char* response : {"The answer is B, A is wrong", "The answer is B and C is wrong", "A or B? B.", "Answer: B or B",
                               "The answer is B and A dog is an animal", "Between A and C I take B"}) {
    EXPECT_EQ(chosen(response), 'B') << response;
  }
}

TEST(MultipleChoice, ReadsVerdictsOfLines) {
  EXPECT_EQ(chosen("A: wrong\nB: right\nC: wrong\nD: wrong"), 'B');
  EXPECT_EQ(chosen("- (A) false\n- (B) **true**\n"), 'B');
  EXPECT_EQ(chosen("A: wrong\nB: wrong"), 0);
  EXPECT_EQ(chosen("A: true\nB: true"), 0);
  EXPECT_EQ(chosen("B) False"), 'B');  // the text of the choice
}

TEST(MultipleChoice, WordsAreNoLetters) {
  for (const char* response : {"", "Because", "A dog", "the answer is a dog", "ABCD", "B2", "Answer: none", "C's", "x"}) {
    EXPECT_EQ(chosen(response), 0) << response;
  }
}

TEST(MultipleChoice, LettersBeyondTheChoicesAreNotSeen) {
  EXPECT_EQ(chosen("B or E", 4), 'B');
  EXPECT_EQ(chosen("B, then E", 5), 'E');
}

TEST(MultipleChoice, LabelMayHaveTheTextOfTheChoice) {
  for (const char* label : {"B", "b", "(B)", "B.", "B) Paris", "(B) Paris", "B: Paris", "B. Paris"}) {
    EXPECT_EQ(score_of<MultipleChoice>({}, "(B)", label), 1) << label;
    EXPECT_EQ(score_of<MultipleChoice>({}, "(C)", label), 0) << label;
  }
}

TEST(MultipleChoice, LabelWithoutALetterNamesItsGroup) {
  for (const char* label : {"Because", "5", "E", "B Paris"}) {
    try {
      NodeHarness<MultipleChoice>().run({labelled("A", "A"), labelled(label, "A")});
      ADD_FAILURE() << label;
    } catch (const UserError& error) {
      EXPECT_THAT(error.what(), HasSubstr("the label of group 1, \"" + std::string(label) + "\", is no choice from A to D"));
    }
  }
}

TEST(MultipleChoice, ReadsLongRunsOfBlanksInOnePass) {
  const std::string blanks(100'000, ' ');
  EXPECT_EQ(chosen("answer:" + blanks + "B"), 'B');
  EXPECT_EQ(chosen("answer:" + blanks + "none"), 0);
  EXPECT_EQ(chosen("not" + blanks + "B"), 0);
  EXPECT_EQ(chosen("A" + blanks + "or" + blanks + "B"), 0);
  EXPECT_EQ(chosen("B" + blanks + "is" + blanks + "x"), 'B');
}

TEST(MultipleChoice, ResponseThatIsNotUtf8ChoosesNothing) { EXPECT_EQ(chosen("\xff B"), 0); }

}  // namespace
}  // namespace sluice::nodes::multiple_choice_test
