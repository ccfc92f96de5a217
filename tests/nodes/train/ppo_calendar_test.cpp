#include "nodes/train/ppo_calendar.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace sluice::nodes::ppo_calendar_test {
namespace {

using ::testing::ElementsAre;

// Each step of the engine in words: "look 0 at 1", "train on 1", with ", whiten 2".
std::vector<std::string> in_words(const PpoCalendar& calendar) {
  std::vector<std::string> steps;
  for (int64_t step = 0; step < calendar.steps(); ++step) {
    const PpoCalendar::Due due = calendar.at(step);
    std::string words;
    if (due.look) words = "look " + std::to_string(*due.look) + " at " + std::to_string(due.mini_batch.value());
    if (due.mini_batch && !due.look) words = "train on " + std::to_string(*due.mini_batch);
    if (due.whitened) words += (words.empty() ? "whiten " : ", whiten ") + std::to_string(*due.whitened);
    steps.push_back(words);
  }
  return steps;
}

TEST(PpoCalendar, MiniBatchesAreCountedOverAllEpochs) {
  EXPECT_THAT(in_words({.epochs = 2, .mini_batches = 2}), ElementsAre("train on 0", "train on 1", "train on 2", "train on 3"));
}

TEST(PpoCalendar, AnObjectiveLooksAtEachMiniBatchBeforeItIsTrainedOn) {
  EXPECT_THAT(in_words({.mini_batches = 2, .looks = 2}),
              ElementsAre("look 0 at 0", "look 1 at 0", "train on 0", "look 0 at 1", "look 1 at 1", "train on 1"));
}

TEST(PpoCalendar, MomentsOfAMiniBatchAreAddedUpWhileTheOneBeforeItIsTrainedOn) {
  EXPECT_THAT(in_words({.epochs = 2, .looks = 1, .whitens = true}),
              ElementsAre("whiten 0", "look 0 at 0", "train on 0, whiten 1", "look 0 at 1", "train on 1"));
}

}  // namespace
}  // namespace sluice::nodes::ppo_calendar_test
