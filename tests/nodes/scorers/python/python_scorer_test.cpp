#include "nodes/scorers/python/python_scorer.h"

#include <fstream>
#include <thread>

#include "base/error.h"
#include "nodes/columns/columns.h"
#include "tests/nodes/scorers/python/python_file.h"

namespace sluice::nodes::python_scorer_test {
namespace {

using python_file::group;
using python_file::Scorer;
using python_file::sums;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// ---- conventions ----

TEST(PythonScorer, FunctionOfPromptResponseAndLabelIsCalledForEachSample) {
  EXPECT_THAT(Scorer("def right(prompt, response, label): return response == label and prompt.startswith('2+')").scores(),
              ElementsAre(1, 0, 0, 1));
}

TEST(PythonScorer, OpenRlhfFunctionGetsQueriesAndReturnsAListOrADictionary) {
  EXPECT_THAT(Scorer("def reward_func(queries, prompts, labels, **kwargs):\n"
                     "  return [q == p + l for q, p, l in zip(queries, prompts, labels)]\n")
                  .scores(),
              ElementsAre(1, 0, 0, 1));
  const auto out = Scorer(
                       "def reward_func(queries, prompts, labels, **kwargs):\n"
                       "  return {'rewards': [1, 2, 3, 4], 'scores': [0] * 4, 'extra_logs': {'length': [1, 1, 1, 5]}}\n")
                       .run(sums());
  EXPECT_THAT(out[columns::kScore], ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(out.metrics().at("reward/score/length"), 2);
  EXPECT_EQ(out.metrics().at("reward/score_mean"), 2.5);
}

TEST(PythonScorer, ArraysWithTolistCountAsLists) {
  EXPECT_THAT(Scorer("class Tensor:\n"
                     "  def tolist(self): return [0.5, 1.5, 2.5, 3.5]\n"
                     "def reward_func(queries, prompts, labels): return Tensor()\n")
                  .scores(),
              ElementsAre(0.5, 1.5, 2.5, 3.5));
}

TEST(PythonScorer, NumbersOfOtherTypesCount) {
  EXPECT_THAT(Scorer("from decimal import Decimal\nfrom fractions import Fraction\n"
                     "def score(response): return Decimal('0.5') if response == '4' else Fraction(1, 4)\n")
                  .scores(),
              ElementsAre(0.5f, 0.25f, 0.5f, 0.25f));
}

TEST(PythonScorer, ObjectsThatAreCalledAreFunctions) {
  EXPECT_THAT(Scorer("class Match:\n"
                     "  def __init__(self, factor): self.factor = factor\n"
                     "  def __call__(self, response, label): return self.factor * (response == label)\n"
                     "score = Match(2)\n")
                  .scores(),
              ElementsAre(2, 0, 0, 2));
  EXPECT_THAT(Scorer("import functools\n"
                     "def _match(response, label, factor): return factor * (response == label)\n"
                     "compute = functools.partial(_match, factor=3)\n")
                  .scores(),
              ElementsAre(3, 0, 0, 3));
  EXPECT_THAT(Scorer("class Match:\n"
                     "  async def __call__(self, response, label): return response == label\n"
                     "score = Match()\n")
                  .scores(),
              ElementsAre(1, 0, 0, 1));
}

TEST(PythonScorer, VerlFunctionIsCalledForEachSampleAndItsOtherNumbersAreRecorded) {
  Scorer scorer(
      "def compute_score(data_source, solution_str, ground_truth, extra_info=None):\n"
      "  assert data_source == 'sums' and 'index' in extra_info\n"
      "  return {'score': float(solution_str == ground_truth), 'acc': solution_str == '5', 'text': 'none'}\n");
  scorer.params.data_source = "sums";
  const auto out = scorer.run(sums());
  EXPECT_THAT(out[columns::kScore], ElementsAre(1, 0, 0, 1));
  EXPECT_EQ(out.metrics().at("reward/score/acc"), 0.5);
  EXPECT_EQ(out.metrics().count("reward/score/text"), 0u);
}

TEST(PythonScorer, VerlFunctionReadsALabelThatIsARowOfItsData) {
  const Scorer scorer(
      "def compute_score(data_source, solution_str, ground_truth, extra_info=None):\n"
      "  return extra_info['points'] if (data_source, solution_str) == ('sums', ground_truth) else 0\n");
  const auto out =
      scorer.run({group("2+2=", R"({"data_source": "sums", "ground_truth": "4", "extra_info": {"points": 7}})", {"4", "5"})});
  EXPECT_THAT(out[columns::kScore], ElementsAre(7, 0));
}

TEST(PythonScorer, TrlFunctionGetsTheLabelAsTheColumnThatItAsksFor) {
  EXPECT_THAT(Scorer("def accuracy(completions, solution, **kwargs):\n"
                     "  kwargs['log_metric']('seen', len(completions))\n"
                     "  return [float(c == s) for c, s in zip(completions, solution)]\n")
                  .scores(),
              ElementsAre(1, 0, 0, 1));
}

TEST(PythonScorer, TrlFunctionGetsTheKeysOfJsonLabelsAsColumns) {
  const Scorer scorer(
      "def f(prompts, completions, answer, bonus, **kwargs):\n"
      "  return [b if c == a else 0 for c, a, b in zip(completions, answer, bonus)]\n");
  EXPECT_THAT(scorer.run({group("2+2=", R"({"answer": "4", "bonus": 3})", {"4", "5"})})[columns::kScore], ElementsAre(3, 0));
  EXPECT_THAT(scorer.error(), HasSubstr("needs the columns answer, bonus"));
}

// The form of the arguments is that of TRL's GRPOTrainer for conversational data.
TEST(PythonScorer, TrlFunctionGetsConversationsWhereThePromptIsOne) {
  const Scorer scorer(
      "def format_reward(prompts, completions, **kwargs):\n"
      "  assert prompts[0] == [{'role': 'user', 'content': '2+2='}]\n"
      "  assert completions[0][0]['role'] == 'assistant'\n"
      "  return [float(completion[0]['content'] == '4') for completion in completions]\n");
  GroupOf chat = group("<user>2+2=<assistant>", "", {"4", "5"});
  chat.value(columns::kMessages, std::string(R"([{"role": "user", "content": "2+2="}])"));
  EXPECT_THAT(scorer.run({chat})[columns::kScore], ElementsAre(1, 0));
}

TEST(PythonScorer, TrlFunctionGetsTextsWhereTheMessagesAreEmpty) {
  const Scorer scorer(
      "def f(prompts, completions, **kwargs): return [float(p + c == '2+2=4') for p, c in zip(prompts, completions)]");
  GroupOf plain = group("2+2=", "", {"4", "5"});
  plain.value(columns::kMessages, std::string());
  EXPECT_THAT(scorer.run({plain})[columns::kScore], ElementsAre(1, 0));
}

TEST(PythonScorer, SlimeFunctionIsAwaitedForAllSamplesAtOnce) {
  EXPECT_THAT(Scorer("import asyncio\n"
                     "arrived = []\n"
                     "async def reward_func(args, sample, **kwargs):\n"
                     "  arrived.append(sample)\n"
                     "  while len(arrived) < 4: await asyncio.sleep(0)\n"
                     "  return float(sample.response == sample.label)\n")
                  .scores(),
              ElementsAre(1, 0, 0, 1));
}

// ---- which function ----

TEST(PythonScorer, FunctionIsFoundAmongOthersAndInOtherFilesOfTheFolder) {
  const Scorer scorer(
      "from helper import right\n"
      "def unrelated(a): return a\n"
      "def mine(response, label): return right(response, label)\n");
  std::ofstream(scorer.folder() / "helper.py") << "def right(response, label): return response == label\n";
  EXPECT_THAT(scorer.scores(), ElementsAre(1, 0, 0, 1));
}

TEST(PythonScorer, SeveralFunctionsNeedAName) {
  Scorer scorer("def one(response): return 1\ndef two(response): return 2\n");
  EXPECT_THAT(scorer.error(), AllOf(HasSubstr("several functions"), HasSubstr("one(response), two(response)")));
  EXPECT_THAT(scorer.error(), AllOf(HasSubstr("function = \"one\""), HasSubstr("combine_scores")));
  EXPECT_THAT(scorer.error(), Not(HasSubstr("reward.py: reward.py")));
  scorer.params.function = "two";
  EXPECT_THAT(scorer.scores(), ElementsAre(2, 2, 2, 2));
  scorer.params.function = "three";
  EXPECT_THAT(scorer.error(), HasSubstr("has no function three"));
}

TEST(PythonScorer, FunctionOfUnknownConventionIsRefusedBeforeTheRun) {
  EXPECT_THAT(Scorer("def reward_func(x, y): return 1").error(),
              AllOf(HasSubstr("reward_func(x, y)"), HasSubstr("prompt, response and label")));
  EXPECT_THAT(Scorer("def mine(text): return 1").error(),
              AllOf(HasSubstr("no function of it could score: mine(text)"), HasSubstr("prompt, response and label")));
}

TEST(PythonScorer, FileThatCannotBeLoadedNamesTheLine) {
  EXPECT_THAT(Scorer("import json\nimport no_such_module_here\n").error(),
              AllOf(HasSubstr("node 'score'"), HasSubstr("no_such_module_here"), HasSubstr("(reward.py:2)"),
                    HasSubstr("python = \"...\" names the interpreter")));
  EXPECT_THAT(Scorer("x = 1\ndef f(:\n").error(), AllOf(HasSubstr("SyntaxError"), HasSubstr("(reward.py:2)")));
}

TEST(PythonScorer, InterpreterThatIsMissingIsRefused) {
  Scorer scorer("def f(response): return 1");
  scorer.params.python = "/no/such/python";
  EXPECT_THAT(scorer.error(), HasSubstr("/no/such/python"));
}

// ---- faults ----

constexpr const char* kRaises =
    "def look(label):\n"
    "  return {'4': 1}[label]\n"
    "def compute_score(data_source, solution_str, ground_truth, extra_info=None):\n"
    "  return 2 * look(ground_truth) if solution_str == '4' else 1\n";

TEST(PythonScorer, ExceptionNamesFunctionTypeFileAndLine) {
  EXPECT_THAT(Scorer(kRaises).error(), HasSubstr("reward.py, function compute_score: KeyError: '5' (reward.py:2)"));
}

// In the column stands the mean of its group's others; of four scores two are of one group, and equal to nothing.
TEST(PythonScorer, SkippedSampleTeachesNothingAndCountsNowhere) {
  Scorer scorer(kRaises);
  scorer.params.on_error = OnError::kSkip;
  const auto out = scorer.run({group("", "4", {"4", "5"}), group("", "5", {"4", "5", "6"}), group("", "5", {"4", "4"})});
  EXPECT_THAT(out[columns::kScore], ElementsAre(2, 1, 1, 1, 1, 0, 0));
  EXPECT_EQ(out.metrics().at("reward/score/failed_samples"), 3);
  EXPECT_NEAR(out.metrics().at("filter/score/dropped_samples"), 3.0 / 7, 1e-9);
  EXPECT_NEAR(out.metrics().at("reward/score_mean"), (2 + 1 + 1 + 1) / 4.0, 1e-9);
  EXPECT_NEAR(out.metrics().at("reward/score_std"), std::sqrt(3) / 4, 1e-6);
  EXPECT_EQ(out.metrics().at("reward/score_zero_variance"), 0.5);  // of the groups with two scores or more
  const auto none = scorer.run({group("", "5", {"4", "4"})});
  EXPECT_FALSE(none.metrics().contains("reward/score_mean"));
}

TEST(PythonScorer, ValueStandsForTheScoreOfAFailedSample) {
  Scorer scorer(kRaises);
  scorer.params.on_error = OnError::kValue;
  scorer.params.error_value = -1;
  EXPECT_THAT(scorer.scores(), ElementsAre(2, 1, -1, 1));
}

TEST(PythonScorer, ErrorValueWithoutItsPolicyIsRefused) {
  EXPECT_THAT(NodeHarness<PythonScorer>::problems({{"file", {std::string("/etc/passwd")}}, {"error_value", {1.0}}}),
              ElementsAre(HasSubstr("error_value")));
}

TEST(PythonScorer, HangIsKilledAndNamedAndTheNextRequestIsAnswered) {
  Scorer scorer(
      "import time\n"
      "def f(response):\n"
      "  if response == 'hang': time.sleep(1000)\n"
      "  return 1\n");
  scorer.params.timeout_seconds = 1;
  scorer.params.on_error = OnError::kValue;
  const auto out = scorer.run({group("", "", {"hang"}), group("", "", {"fine"})}, {1, 1});
  EXPECT_THAT(out[columns::kScore], ElementsAre(0, 1));
  scorer.params.on_error = OnError::kFail;
  EXPECT_THAT(message_of<UserError>([&] { scorer.run({group("", "", {"hang"})}); }),
              HasSubstr("did not answer within 1.0 s and was killed"));
}

TEST(PythonScorer, EndOfTheProcessIsNamedWithItsLastWords) {
  EXPECT_THAT(Scorer("import os, sys\ndef f(response):\n  print('giving up')\n  os._exit(7)\n").error(),
              AllOf(HasSubstr("exited with code 7"), HasSubstr("giving up")));
  EXPECT_THAT(Scorer("import os, signal\ndef f(response): os.kill(os.getpid(), signal.SIGKILL)\n").error(),
              HasSubstr("signal 9"));
  EXPECT_THAT(Scorer("import sys\nsys.exit(3)\n").error(), HasSubstr("exited with code 3"));
}

TEST(PythonScorer, CrashFailsOnlyItsOwnBatch) {
  Scorer scorer(
      "import os\n"
      "def f(response):\n"
      "  if response == 'crash': os.abort()\n"
      "  return 1\n");
  scorer.params.on_error = OnError::kValue;
  scorer.params.batch_size = 1;
  EXPECT_THAT(scorer.run({group("", "", {"a", "crash", "b"}), group("", "", {"crash", "c"})})[columns::kScore],
              ElementsAre(1, 0, 1, 0, 1));
}

TEST(PythonScorer, WhatItPrintsDoesNotDisturb) {
  EXPECT_THAT(Scorer("import os, subprocess, sys\n"
                     "print('loading')\n"
                     "def f(response, label):\n"
                     "  print('{\"scores\": [9]}')\n"
                     "  os.write(1, b'raw\\n')\n"
                     "  subprocess.run(['echo', 'from a child'])\n"
                     "  sys.__stdout__.write('more') if sys.__stdout__ else None\n"
                     "  return response == label\n")
                  .scores(),
              ElementsAre(1, 0, 0, 1));
}

TEST(PythonScorer, FunctionThatWritesIntoEveryDescriptorFailsItsSampleAndIsNamed) {
  Scorer scorer(
      "import os\n"
      "def f(response):\n"
      "  for descriptor in range(3, 2000) if response == 'bad' else ():\n"
      "    try: os.write(descriptor, b'[1, 2]\\n')\n"
      "    except OSError: pass\n"
      "  return 1\n");
  scorer.params.batch_size = 1;
  EXPECT_THAT(message_of<UserError>([&] { scorer.run({group("", "", {"bad"})}); }),
              AllOf(HasSubstr("reward.py, function f: its process wrote \"[1, 2]\" into the channel"), HasSubstr("was killed")));
  scorer.params.on_error = OnError::kValue;
  const auto out = scorer.run({group("", "", {"bad", "good", "good"})});
  EXPECT_THAT(out[columns::kScore], ElementsAre(0, 1, 1));
}

TEST(PythonScorer, FileThatWritesIntoEveryDescriptorIsRefusedByName) {
  EXPECT_THAT(Scorer("import os\n"
                     "for descriptor in range(3, 2000):\n"
                     "  try: os.write(descriptor, b'[1]\\n')\n"
                     "  except OSError: pass\n"
                     "def f(response): return 1\n")
                  .error(),
              AllOf(HasSubstr("node 'score'"), HasSubstr("reward.py: wrote \"[1]\" into the channel")));
}

TEST(PythonScorer, WhatItStartsInheritsNoDescriptors) {
  EXPECT_THAT(Scorer("import os, subprocess\n"
                     "def f(response):\n"
                     "  started = subprocess.run(['ls', '/proc/self/fd'], close_fds=False, capture_output=True, text=True)\n"
                     "  assert started.stdout.split() == ['0', '1', '2', '3'], started.stdout  # 3: the folder that it lists\n"
                     "  child = os.fork()\n"
                     "  if child == 0: os._exit(len(os.listdir('/proc/self/fd')))\n"
                     "  assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 4\n"
                     "  return 1\n")
                  .scores(),
              ElementsAre(1, 1, 1, 1));
}

TEST(PythonScorer, NameOfAMetricThatCannotBeOneIsItsFailure) {
  Scorer scorer("def f(response): return {'score': 1, 'a/b-c_d.e' if response == '4' else 'x\\x1b[2J': 2}");
  EXPECT_THAT(scorer.error(), AllOf(HasSubstr("reward.py, function f: it named a metric"), HasSubstr("x\\x1b[2J")));
  scorer.params.on_error = OnError::kValue;
  const auto out = scorer.run(sums());
  EXPECT_THAT(out[columns::kScore], ElementsAre(1, 0, 1, 0));
  EXPECT_EQ(out.metrics().at("reward/score/a/b-c_d.e"), 2);
}

TEST(PythonScorer, FailureNamesTheSampleAndShowsItsText) {
  const Scorer scorer("def f(response): return 1 / (len(response) < 3)");
  try {
    scorer.run({group("", "", {"a", "b"}), group("", "", {"c", "\x1b[31mred and more"})});
    FAIL();
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(), HasSubstr("sample 1 of group 1, \"\\u001B[31mred and more\""));
  }
}

TEST(PythonScorer, WrongCountIsAnError) {
  EXPECT_THAT(Scorer("def reward_func(queries, prompts, labels): return [1, 2, 3]").error(),
              AllOf(HasSubstr("it returned 3 scores for 4 samples"),
                    HasSubstr("4 samples of 4 could not be scored, the first of them sample 0 of group 0, \"4\"")));
  EXPECT_THAT(Scorer("def reward_func(queries, prompts, labels): return None").error(), HasSubstr("NoneType"));
}

// Two failures whose texts differ, as by milliseconds, are two failed samples.
TEST(PythonScorer, EveryFailedSampleIsCountedWhateverItsWords) {
  const Scorer scorer("def f(response):\n  if response != 'fine': raise TimeoutError(response)\n  return 1\n");
  EXPECT_THAT(message_of<UserError>([&] {
                scorer.run({group("", "", {"after 31 ms", "fine", "after 32 ms"})});
              }),
              AllOf(HasSubstr("TimeoutError: after 31 ms"),
                    HasSubstr("2 samples of 3 could not be scored, the first of them sample 0 of group 0, \"after 31 ms\"")));
}

TEST(PythonScorer, ErrorValueBeyondFloat32IsRefused) {
  EXPECT_THAT(NodeHarness<PythonScorer>::problems(
                  {{"file", {std::string("/etc/passwd")}}, {"on_error", {std::string("value")}}, {"error_value", {1e39}}}),
              ElementsAre(HasSubstr("error_value must be a number from -1e+38 to 1e+38")));
}

TEST(PythonScorer, WhatIsNoFiniteNumberIsAnError) {
  EXPECT_THAT(Scorer("def f(response): return float('nan')").error(), HasSubstr("it returned nan"));
  EXPECT_THAT(Scorer("def f(response): return -1e999").error(), HasSubstr("it returned -inf"));
  EXPECT_THAT(Scorer("def f(response): return 'good'").error(), HasSubstr("a value of type str"));
  EXPECT_THAT(Scorer("def f(response): pass").error(), HasSubstr("it returned None"));
}

TEST(PythonScorer, NumberThatIsNoFloat32IsAnError) {
  EXPECT_THAT(Scorer("def f(response): return 1e300").error(),
              HasSubstr("it returned 1e+300 for this sample, and no number may be larger than 3.403e+38"));
}

TEST(PythonScorer, ResponseThatIsNotUtf8Arrives) {
  EXPECT_THAT(Scorer("def f(response): return len(response)").run({group("", "", {"\xff 72\n", ""})})[columns::kScore],
              ElementsAre(5, 0));
}

TEST(PythonScorer, DiesWithItsNode) {
  const Scorer scorer(
      "import os\n"
      "open(os.path.join(os.path.dirname(__file__), 'pid'), 'w').write(str(os.getpid()))\n"
      "def f(response): return 1\n");
  scorer.scores();
  std::string pid;
  std::ifstream(scorer.folder() / "pid") >> pid;
  EXPECT_FALSE(std::filesystem::exists("/proc/" + pid)) << pid;
}

// ---- workers ----

TEST(PythonScorer, ScoresAreInOrderWhateverTheTiming) {
  Scorer scorer(
      "import time\n"
      "def f(response):\n"
      "  time.sleep(0.05 / float(response))\n"
      "  return float(response)\n");
  scorer.params.workers = 3;
  scorer.params.batch_size = 1;
  std::vector<GroupOf> groups;
  for (int i = 1; i <= 6; ++i) groups.push_back(group("", "", {std::to_string(i)}));
  EXPECT_THAT(scorer.run(std::move(groups))[columns::kScore], ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST(PythonScorer, WorkersGetWholeGroups) {
  Scorer scorer("def reward_func(queries, prompts, labels): return [len(queries)] * len(queries)");
  scorer.params.workers = 2;
  EXPECT_THAT(scorer.run({group("", "", {"a", "b", "c"}), group("", "", {"d"})})[columns::kScore], ElementsAre(3, 3, 3, 1));
  scorer.params.batch_size = 2;
  EXPECT_THAT(scorer.run({group("", "", {"a", "b", "c"}), group("", "", {"d"})})[columns::kScore], ElementsAre(2, 2, 1, 1));
}

TEST(PythonScorer, RandomNumbersRepeatWhateverTheWorkers) {
  for (const std::string word : {"", "async "}) {
    Scorer scorer("import random\n" + word + "def f(response): return random.random()");
    const auto alone = scorer.scores();
    scorer.params.workers = 2;
    scorer.params.batch_size = 1;
    EXPECT_EQ(scorer.scores(), alone) << word;
    EXPECT_NE(alone[0], alone[1]);
  }
}

TEST(PythonScorer, AFunctionMayReturnWhatAnAwaitNeeds) {
  Scorer scorer("async def late(response): return 0.5\ndef f(response): return late(response)");
  scorer.params.function = "f";
  EXPECT_THAT(scorer.scores(), ::testing::Each(0.5));
}

TEST(PythonScorer, ANumberThatNoFloatHoldsIsNoMetric) {
  Scorer scorer("def f(response): return {'score': 1, 'steps': 10 ** 400}");
  EXPECT_THAT(scorer.scores(), ::testing::Each(1));
}

}  // namespace
}  // namespace sluice::nodes::python_scorer_test
