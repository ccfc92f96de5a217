#include "cli/command/run_words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sluice::cli::run_words_test {
namespace {

using ::testing::ElementsAre;

TEST(RunWords, SayNothingOfWhatIsNotAskedFor) {
  RunArguments arguments;
  arguments.pipeline.file = "a b.toml";
  EXPECT_THAT(words_of(arguments), ElementsAre("run", "a b.toml"));
}

TEST(RunWords, SayAllThatIsAskedFor) {
  RunArguments arguments;
  arguments.pipeline.file = "p.toml";
  arguments.pipeline.sets = {"pipeline.iterations=3", "nodes.a.text=\"-x = y\""};
  arguments.pipeline.plugins = {.files = {"a.so", "b.so"}, .all = true};
  arguments.run_folder = "runs/my run";
  arguments.may_go_on = true;
  arguments.accept_changes = true;
  arguments.show_samples_every = 20;
  EXPECT_THAT(words_of(arguments), ElementsAre("run", "p.toml", "--set=pipeline.iterations=3", "--set=nodes.a.text=\"-x = y\"",
                                               "--plugin=a.so", "--plugin=b.so", "--plugins", "--run-dir=runs/my run",
                                               "--resume=auto", "--show-samples=20", "--accept-changes"));
}

TEST(RunWords, SayHowARunGoesOn) {
  ResumeArguments arguments{.run_folder = "runs/my run", .from = 8, .sets = {"pipeline.iterations=3"}};
  arguments.plugins = {.files = {"a.so"}, .all = false};
  arguments.accept_changes = true;
  arguments.show_samples_every = 1;
  EXPECT_THAT(words_of(arguments), ElementsAre("resume", "runs/my run", "--from=8", "--set=pipeline.iterations=3",
                                               "--plugin=a.so", "--show-samples=1", "--accept-changes"));
}

TEST(RunWords, TellWhatGoesOnWithARunOnAsManyRanks) {
  engine::Plan plan;
  EXPECT_EQ(command_to_go_on(plan, "runs/my run"), "rlhf-run resume 'runs/my run'");
  plan.ranks = 3;
  plan.plugins = {"a.so"};
  EXPECT_EQ(command_to_go_on(plan, "runs/a"),
            "rlhf-run launch --ranks 3 runs/a/pipeline.toml --plugins --resume auto --run-dir runs/a");
  plan.roles.resize(2);
  EXPECT_EQ(command_to_go_on(plan, "runs/a"), "rlhf-run resume runs/a --plugins");
}

}  // namespace
}  // namespace sluice::cli::run_words_test
