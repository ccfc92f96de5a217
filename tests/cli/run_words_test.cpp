#include "cli/run_words.h"

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

}  // namespace
}  // namespace sluice::cli::run_words_test
