#include "cli/sweep/sweep_grid.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

namespace sluice::cli::sweep_grid_test {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

SweepGrid grid_of(const std::vector<std::string>& sets, const std::vector<std::int64_t>& seeds = {1}) {
  Problems problems;
  SweepGrid grid = read_grid(sets, seeds, problems);
  EXPECT_THAT(problems, IsEmpty()) << render(problems);
  return grid;
}

std::vector<std::string> values_of(const std::string& set) {
  const SweepGrid grid = grid_of({set});
  return grid.keys.empty() ? std::vector<std::string>() : grid.keys.front().values;
}

std::vector<std::string> names_of(const SweepGrid& grid) {
  std::vector<std::string> names;
  for (const SweptRun& run : runs_of(grid)) names.push_back(run.name);
  return names;
}

std::string problem_of(const std::vector<std::string>& sets, const std::vector<std::int64_t>& seeds = {1}) {
  Problems problems;
  read_grid(sets, seeds, problems);
  return problems.size() == 1 ? problems.front().message : render(problems);
}

TEST(SweptValues, AreSeparatedByCommas) {
  EXPECT_THAT(values_of("a.b=1,2,3"), ElementsAre("1", "2", "3"));
  EXPECT_THAT(values_of("a.b = 1e-4 , 2e-4"), ElementsAre("1e-4", "2e-4"));
  EXPECT_THAT(values_of("a.b=gae,grpo"), ElementsAre("gae", "grpo"));
}

TEST(SweptValues, AreNotSplitInsideOfStringsBracketsAndBraces) {
  EXPECT_THAT(values_of("a=\"x,y\",'z,w'"), ElementsAre("\"x,y\"", "'z,w'"));
  EXPECT_THAT(values_of("a=[1,2],[3]"), ElementsAre("[1,2]", "[3]"));
  EXPECT_THAT(values_of("a={ b = [1,{c=2,d=3}], e = 4 },false"), ElementsAre("{ b = [1,{c=2,d=3}], e = 4 }", "false"));
  EXPECT_THAT(values_of("a=[\"]\",2],3"), ElementsAre("[\"]\",2]", "3"));
}

TEST(SweptValues, OfStringsTellAnEscapedQuoteFromItsEnd) {
  EXPECT_THAT(values_of(R"(a="x\",y","z\\",1)"), ElementsAre(R"("x\",y")", R"("z\\")", "1"));
  EXPECT_THAT(values_of(R"(a='\',2)"), ElementsAre(R"('\')", "2"));
}

// Such as the temperature of all nodes that must have the same.
TEST(SweptKeys, MayHaveTheSameValue) {
  const SweepGrid grid = grid_of({"a.t+\"b+c\".t=1,2", "d+e=3"});
  EXPECT_THAT(grid.sets, ElementsAre("d=3", "e=3"));
  EXPECT_THAT(names_of(grid), ElementsAre("t=1,seed=1", "t=2,seed=1"));
  EXPECT_THAT(runs_of(grid).back().sets, ElementsAre("d=3", "e=3", "a.t=2", "\"b+c\".t=2", "pipeline.seed=1"));
  EXPECT_THAT(problem_of({"a+b=1,2", "b=3"}), HasSubstr("--set has b twice"));
}

TEST(SweptValues, OneValueStaysAsItWasWritten) {
  const SweepGrid grid = grid_of({"a.b = [1, 2]", "c=", "d=\"x,y\""});
  EXPECT_THAT(grid.sets, ElementsAre("a.b = [1, 2]", "c=", "d=\"x,y\""));
  EXPECT_THAT(grid.keys, IsEmpty());
}

TEST(SweptValues, AKeyInQuotesMayHaveWhatSeparates) {
  const SweepGrid grid = grid_of({"a.\"b=c.d\"=1,2"});
  EXPECT_EQ(grid.keys.front().key, "a.\"b=c.d\"");
  EXPECT_THAT(grid.keys.front().values, ElementsAre("1", "2"));
}

TEST(SweptValues, AnEmptyOneAmongOthersIsRefused) {
  EXPECT_EQ(problem_of({"a=1,,2"}), "--set a=1,,2: a value is empty");
  EXPECT_EQ(problem_of({"a=1,"}), "--set a=1,: a value is empty");
}

TEST(SweptValues, OneThatIsThereTwiceIsRefused) {
  EXPECT_EQ(problem_of({"a=1,2,1"}), "--set a=1,2,1: the value 1 is there twice");
  EXPECT_EQ(problem_of({"a=1e-4,0.0001"}), "--set a=1e-4,0.0001: the value 0.0001 is there twice");
  EXPECT_EQ(problem_of({"a=1,1.5,1.0"}), "--set a=1,1.5,1.0: the value 1.0 is there twice");
  EXPECT_EQ(problem_of({"a=9007199254740993,9007199254740992"}), "") << "no two integers are the same";
}

TEST(SweptKeys, ThatAreThereTwiceAreRefused) {
  EXPECT_EQ(problem_of({"a.b=1", "a.b=2,3"}), "--set has a.b twice");
  EXPECT_THAT(problem_of({"pipeline.seed=1,2"}, {3}), HasSubstr("--seeds and by --set pipeline.seed=1,2"));
}

TEST(SweptKeys, AllProblemsAreFoundInOnePass) {
  Problems problems;
  read_grid({"a=1,1", "b=,2", "b=3"}, {}, problems);
  EXPECT_EQ(problems.size(), 3u) << render(problems);
}

TEST(SweptKeys, ThereMustBeSomethingToSweep) {
  EXPECT_THAT(problem_of({"a=1"}, {}), HasSubstr("nothing to sweep"));
  EXPECT_THAT(grid_of({"a=1,2"}, {}).seeds, IsEmpty());
}

TEST(SweptKeys, AreRefusedWhereTheyMakeTooManyRuns) {
  std::vector<std::int64_t> seeds(11);
  std::iota(seeds.begin(), seeds.end(), 0);
  std::string set = "a=0";
  for (int i = 1; i < 100; ++i) set += "," + std::to_string(i);
  EXPECT_EQ(problem_of({set}, seeds), "these are 1.1k runs, and a sweep has at most 1000");
}

TEST(SweptRuns, AreAllCombinationsTheLastKeyFastestAndThenTheSeed) {
  const SweepGrid grid = grid_of({"x.a=1,2", "y.b=3,4", "z.c=5"}, {7, 8});
  EXPECT_THAT(names_of(grid), ElementsAre("a=1,b=3,seed=7", "a=1,b=3,seed=8", "a=1,b=4,seed=7", "a=1,b=4,seed=8",
                                          "a=2,b=3,seed=7", "a=2,b=3,seed=8", "a=2,b=4,seed=7", "a=2,b=4,seed=8"));
  const std::vector<SweptRun> runs = runs_of(grid);
  EXPECT_THAT(runs[5].sets, ElementsAre("z.c=5", "x.a=2", "y.b=3", "pipeline.seed=8"));
  EXPECT_EQ(runs[1].combination, 0u);
  EXPECT_EQ(runs[5].combination, 2u);
  EXPECT_EQ(combination_name(grid, combinations_of(grid)[2]), "a=2,b=3");
}

TEST(SweptRuns, OfSeedsAloneAreOneCombination) {
  const SweepGrid grid = grid_of({}, {1, 2});
  EXPECT_THAT(names_of(grid), ElementsAre("seed=1", "seed=2"));
  EXPECT_EQ(runs_of(grid)[1].combination, 0u);
  EXPECT_EQ(combination_name(grid, combinations_of(grid)[0]), "all");
}

TEST(SweptRuns, WithoutSeedsHaveThatOfThePipeline) {
  const SweepGrid grid = grid_of({"a=1,2"}, {});
  EXPECT_THAT(names_of(grid), ElementsAre("a=1", "a=2"));
  EXPECT_THAT(runs_of(grid)[1].sets, ElementsAre("a=2"));
}

TEST(SweptRuns, AreCalledByAsMuchOfAKeyAsTellsItFromTheOthers) {
  const SweepGrid grid = grid_of({"models.actor.optimizer.rate=1,2", "models.critic.optimizer.rate=3,4", "x.seed=5,6"});
  EXPECT_EQ(names_of(grid).front(), "actor.optimizer.rate=1,critic.optimizer.rate=3,x.seed=5,seed=1");
}

TEST(SweptRuns, HaveNamesThatEveryFolderMayHave) {
  const SweepGrid grid = grid_of({"a=\"../x y\",\"../x/y\",'\n'"});
  EXPECT_THAT(names_of(grid), ElementsAre("a=..-x-y,seed=1", "a=..-x-y-2,seed=1", "a=-,seed=1"));
  const std::string long_value(300, 'v');
  const SweepGrid cut = grid_of({"a=" + long_value + "1," + long_value + "2"});
  EXPECT_THAT(names_of(cut),
              ElementsAre("a=" + long_value.substr(0, 40) + ",seed=1", "a=" + long_value.substr(0, 40) + "-2,seed=1"));
}

TEST(Seeds, AreNumbersAndRanges) {
  EXPECT_THAT(read_seeds("1..5").seeds, ElementsAre(1, 2, 3, 4, 5));
  EXPECT_THAT(read_seeds("7").seeds, ElementsAre(7));
  EXPECT_THAT(read_seeds("0, 3..4,9").seeds, ElementsAre(0, 3, 4, 9));
  EXPECT_THAT(read_seeds("9223372036854775806..9223372036854775807").seeds,
              ElementsAre(9223372036854775806, 9223372036854775807));
  EXPECT_EQ(read_seeds("0, 3..4,9").fault, "");
}

TEST(Seeds, ThatAreNoneAreRefused) {
  for (const char* text : {"", "5..1", "1-5", "a", "1..", "..3", "-1", "1.5", "1,,2", "1...3", "99999999999999999999"}) {
    EXPECT_THAT(read_seeds(text).fault, HasSubstr("is not a seed from 0, nor a range")) << text;
  }
  EXPECT_EQ(read_seeds("1..3,2").fault, "the seed 2 is there twice");
  EXPECT_THAT(read_seeds("1..9223372036854775807").fault, HasSubstr("are more than 1000 seeds"));
}

}  // namespace
}  // namespace sluice::cli::sweep_grid_test
