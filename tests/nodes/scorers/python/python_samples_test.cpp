// One sample of a batch of python_scorer says nothing about the others.
#include "tests/nodes/scorers/python/python_file.h"

namespace sluice::nodes::python_samples_test {
namespace {

using python_file::group;
using python_file::Scorer;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// ---- one that fails ----

// `fault` is what the function does with the response "bad".
std::string faulty(const std::string& fault, const std::string& word = "") {
  return "import asyncio, decimal, sys\n"
         "class Mute(Exception):\n"
         "  def __str__(self): raise RuntimeError('no text')\n"
         "class Late(BaseException): pass\n"
         "class Odd(float):\n"
         "  def __float__(self): raise LookupError('odd')\n"
         "def throw(error): raise error\n" +
         word + "def f(response): return " + fault + " if response == 'bad' else 1\n";
}

std::vector<float> scores_beside(const std::string& source) {
  Scorer scorer(source);
  scorer.params.on_error = OnError::kValue;
  scorer.params.error_value = -5;
  return scorer.run({group("", "", {"good", "bad", "good"})})[columns::kScore];
}

TEST(PythonSamples, OneThatFailsCostsItsNeighboursNothing) {
  for (const char* fault : {"throw(Mute())", "decimal.Decimal('sNaN')", "decimal.Decimal('NaN')", "sys.exit(1)",
                            "throw(Late('late'))", "Odd(2)", "throw(asyncio.CancelledError())"}) {
    for (const char* word : {"", "async "}) {
      EXPECT_THAT(scores_beside(faulty(fault, word)), ElementsAre(1, -5, 1)) << word << fault;
    }
  }
}

TEST(PythonSamples, TheOneThatFailedIsNamed) {
  const auto said = [](const std::string& fault) {
    return message_of<UserError>([&] { Scorer(faulty(fault)).run({group("", "", {"good", "bad", "good"})}); });
  };
  EXPECT_THAT(said("throw(Mute())"), AllOf(HasSubstr("Mute: its own text raised RuntimeError (reward.py:7)"),
                                           HasSubstr("it was to score sample 1 of group 0, \"bad\"")));
  EXPECT_THAT(said("sys.exit(1)"), AllOf(HasSubstr("SystemExit: 1 (reward.py:8)"), HasSubstr("sample 1 of group 0")));
  EXPECT_THAT(said("decimal.Decimal('sNaN')"), HasSubstr("it returned nan for this sample"));
}

TEST(PythonSamples, OneBadEntryOfAListCostsTheOthersNothing) {
  EXPECT_THAT(
      scores_beside("import decimal\ndef reward_func(queries, prompts, labels): return [1, decimal.Decimal('sNaN'), 1]\n"),
      ElementsAre(1, -5, 1));
}

TEST(PythonSamples, ABatchFunctionThatExitsFailsItsBatchByName) {
  Scorer scorer("import sys\ndef reward_func(queries, prompts, labels): sys.exit(3)\n");
  EXPECT_THAT(scorer.error(), HasSubstr("reward.py, function reward_func: SystemExit: 3 (reward.py:2)"));
}

// ---- labels ----

constexpr const char* kRow = R"({"ground_truth": "4", "data_source": "row", "extra_info": {"points": 7}})";

// One label is a row of verl's data, one is not; whether they come in one batch must not matter.
TEST(PythonSamples, LabelOfAVerlFunctionIsReadByItself) {
  for (const char* source : {"def compute_score(data_source, solution_str, ground_truth, extra_info=None):\n"
                             "  return extra_info.get('points', 1) if solution_str == ground_truth else 0\n",
                             "def compute_score(data_sources, solution_strs, ground_truths, extra_infos):\n"
                             "  rows = zip(solution_strs, ground_truths, extra_infos)\n"
                             "  return [e.get('points', 1) if s == g else 0 for s, g, e in rows]\n"}) {
    Scorer scorer(source);
    const std::vector<GroupOf> groups = {group("", kRow, {"4", "5"}), group("", "5", {"4", "5"})};
    EXPECT_THAT(scorer.run(groups)[columns::kScore], ElementsAre(7, 0, 0, 1));
    scorer.params.batch_size = 1;
    EXPECT_THAT(scorer.run(groups)[columns::kScore], ElementsAre(7, 0, 0, 1));
  }
}

TEST(PythonSamples, ExtraInfoThatIsNoObjectFailsItsSampleAlone) {
  Scorer scorer("def compute_score(data_source, solution_str, ground_truth, extra_info=None): return 1\n");
  scorer.params.on_error = OnError::kValue;
  EXPECT_THAT(
      scorer.run({group("", R"({"ground_truth": "4", "extra_info": "x"})", {"4"}), group("", "4", {"4"})})[columns::kScore],
      ElementsAre(0, 1));
}

// ---- columns of TRL ----

constexpr const char* kAnswers =
    "def f(completions, answer, **kwargs): return [float(c == a) for c, a in zip(completions, answer)]\n";

TEST(PythonSamples, LabelsOfATrlFunctionOfWhichSomeAreObjectsAreRefused) {
  EXPECT_THAT(message_of<UserError>([] {
                Scorer(kAnswers).run({group("", R"({"answer": "4"})", {"4", "5"}), group("", "5", {"4"})});
              }),
              HasSubstr("the label of sample 0 of its batch is a JSON object and that of sample 2 is none"));
}

TEST(PythonSamples, ColumnThatOneLabelLacksIsNamed) {
  EXPECT_THAT(message_of<UserError>([] {
                Scorer(kAnswers).run({group("", R"({"answer": "4"})", {"4"}), group("", R"({"solution": "5"})", {"5"})});
              }),
              HasSubstr("needs the column answer, which the label of sample 1 of its batch does not have"));
}

TEST(PythonSamples, TrlFunctionWithoutColumnsTakesLabelsOfAnyKind) {
  const Scorer scorer("def f(completions): return [len(c) for c in completions]\n");
  EXPECT_THAT(scorer.run({group("", R"({"answer": "4"})", {"4"}), group("", "5", {"55"})})[columns::kScore], ElementsAre(1, 2));
}

}  // namespace
}  // namespace sluice::nodes::python_samples_test
