#include "nodes/rollout/turns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <future>
#include <map>
#include <mutex>
#include <thread>

#include "base/error.h"
#include "nodes/forward/logprobs.h"
#include "tests/nodes/sampling.h"

namespace sluice::nodes::turns_test {
namespace {

using engine::Group;
using ::testing::Each;
using testing::floats;
using ::testing::HasSubstr;
using testing::logprobs_of;
using testing::metric;
using testing::params_with;
using testing::prompt_group;
using testing::run_node;
using testing::Sampling;
using ::testing::ThrowsMessage;
using testing::tiny_model;
using testing::TinyFolder;
using testing::tokens_of;
using testing::tokens_of_sample;

const std::vector<std::string> kPrompts{"2+2=", "a much longer prompt", "x"};

// Replies as a function says. Every fifth of the letters that a model samples ends a turn.
class Scripted final : public Environment {
 public:
  explicit Scripted(std::function<Reply(const Turn&)> script) : script_(std::move(script)) {}

  Reply reply(const Turn& turn) const override { return script_(turn); }
  std::vector<std::string> turn_ends() const override {
    std::vector<std::string> ends;
    for (int c = '!'; c <= '~'; c += 5) ends.emplace_back(1, static_cast<char>(c));
    return ends;
  }
  int64_t most_calls() const override { return 3; }

 private:
  std::function<Reply(const Turn&)> script_;
};

Reply says(std::string text) { return {.text = std::move(text), .done = false, .reward = {}}; }

class TurnsTest : public ::testing::Test {
 protected:
  GenerateParams params(int64_t samples, int64_t max_new_tokens, std::function<Reply(const Turn&)> script) {
    GenerateParams params = params_with(samples, max_new_tokens);
    params.environment.type = "scripted";
    params.environment.object = std::make_shared<Scripted>(std::move(script));
    return params;
  }

  std::vector<Group> run(const GenerateParams& params) { return Sampling(params, model_).run(kPrompts); }

  const TinyFolder folder_;
  const std::shared_ptr<LanguageModel> model_ = tiny_model(folder_.path(), {});
};

// The text of the tokens after the prompt that are no actions.
std::string given_text(const Group& group, size_t s, size_t prompt, const text::Tokenizer& tokenizer) {
  const std::vector<int64_t> tokens = tokens_of_sample(group, s);
  const engine::Range actions = group.layout.actions_by_sample()[s];
  const auto first = group.layout.token_offsets[s] + static_cast<int64_t>(prompt);
  std::vector<int64_t> given(tokens.begin() + static_cast<std::ptrdiff_t>(prompt), tokens.end());
  for (size_t a = actions.end; a-- > actions.begin;) {
    given.erase(given.begin() + (group.layout.action_tokens[a] - first));
  }
  return tokenizer.decode(given);
}

TEST_F(TurnsTest, RepliesAreInTheContextAndAreNoActions) {
  std::mutex mutex;
  std::map<std::pair<int64_t, int64_t>, std::string> said;  // by group and sample
  const auto groups = run(params(4, 60, [&](const Turn& turn) {
    const std::string text = "<" + std::to_string(turn.index) + ">";
    const std::lock_guard lock(mutex);
    said[{turn.group, turn.sample}] += text;
    return says(text);
  }));
  for (size_t g = 0; g < groups.size(); ++g) {
    for (size_t s = 0; s < 4; ++s) {
      const std::string given = given_text(groups[g], s, kPrompts[g].size(), model_->text().tokenizer());
      const std::string all = said[{static_cast<int64_t>(g), static_cast<int64_t>(s)}];
      EXPECT_EQ(given, all.substr(0, given.size()));  // the last may be cut
      EXPECT_GE(given.size() + 5, all.size()) << given;
      EXPECT_FALSE(given.empty());
    }
  }
}

TEST_F(TurnsTest, LogprobsOfTheActionsAreThoseOfTheModelOnTheFinalTokens) {
  const auto groups = run(params(4, 60, [](const Turn& turn) { return says("reply to " + turn.last + " "); }));
  const auto again = run_node<Logprobs>(LogprobsParams{.model = "actor"}, {{"actor", model_}}, groups);
  EXPECT_THAT(floats(again, "reference_logprobs"), ::testing::Pointwise(::testing::FloatNear(1e-4f), logprobs_of(groups)));
}

TEST_F(TurnsTest, TheTokensOfATurnStayWhatTheyWereInTheNext) {
  GenerateParams settings = params(4, 100, [](const Turn&) { return says("1+1"); });
  std::vector<Group> before;
  for (const int64_t turns : {1, 2, 3}) {
    settings.max_turns = turns;
    const std::vector<Group> groups = run(settings);
    for (size_t g = 0; g < before.size(); ++g) {
      for (size_t s = 0; s < 4; ++s) {
        const auto shorter = tokens_of_sample(before[g], s), longer = tokens_of_sample(groups[g], s);
        ASSERT_LE(shorter.size(), longer.size());
        EXPECT_TRUE(std::equal(shorter.begin(), shorter.end(), longer.begin()));
      }
    }
    before = groups;
  }
}

TEST_F(TurnsTest, HowLongRepliesTakeChangesNothing) {
  const auto script = [](const Turn& turn) {
    return Reply{.text = turn.last + "!", .done = turn.index == 3, .reward = turn.index + turn.sample};
  };
  const auto slow = [&](const Turn& turn) {
    RandomStream random(turn.transcript.size(), 0, static_cast<uint32_t>(turn.group), static_cast<uint32_t>(turn.sample));
    std::this_thread::sleep_for(std::chrono::microseconds(random.below(4000)));
    return script(turn);
  };
  const std::vector<Group> quick = run(params(6, 60, script));
  GenerateParams settings = params(6, 60, slow);
  for (const int64_t places : {256, 2}) {
    settings.max_running_samples = places;
    const std::vector<Group> groups = run(settings);
    EXPECT_EQ(tokens_of(groups), tokens_of(quick));
    EXPECT_EQ(logprobs_of(groups), logprobs_of(quick));
    for (size_t g = 0; g < quick.size(); ++g) {
      EXPECT_TRUE(std::ranges::equal(groups[g].read(columns::kFinish), quick[g].read(columns::kFinish)));
      EXPECT_TRUE(std::ranges::equal(groups[g].read(columns::kEnvironmentScore), quick[g].read(columns::kEnvironmentScore)));
    }
  }
}

TEST_F(TurnsTest, TheEnvironmentIsToldPromptTranscriptAndTurn) {
  std::mutex mutex;
  std::map<std::pair<int64_t, int64_t>, std::vector<Turn>> turns;  // by group and sample
  const auto groups = run(params(3, 50, [&](const Turn& turn) {
    const std::lock_guard lock(mutex);
    turns[{turn.group, turn.sample}].push_back(turn);
    return says("re");
  }));
  for (const auto& [place, of_sample] : turns) {
    std::string transcript;
    for (size_t t = 0; t < of_sample.size(); ++t) {
      EXPECT_EQ(of_sample[t].index, static_cast<int64_t>(t));
      EXPECT_EQ(of_sample[t].prompt, kPrompts[static_cast<size_t>(place.first)]);
      transcript += of_sample[t].last;
      EXPECT_EQ(of_sample[t].transcript, transcript);
      transcript += "re";
    }
    const std::string& response =
        groups[static_cast<size_t>(place.first)].read(columns::kResponse)[static_cast<size_t>(place.second)];
    EXPECT_TRUE(response.starts_with(of_sample.back().transcript)) << response;
  }
  EXPECT_EQ(turns.size(), 9u);
}

TEST_F(TurnsTest, TheLabelIsToldWhereThereIsOne) {
  GenerateParams settings =
      params(1, 40, [](const Turn& turn) { return Reply{.text = {}, .done = true, .reward = turn.label == "four"}; });
  Sampling sampling(settings, model_);
  sampling.node().begin_iteration({});
  Group group = prompt_group(0, 0, "2+2=");
  group.write(columns::kLabel)[0] = "four";
  sampling.node().start(std::move(group));
  testing::CollectingSink sink;
  while (!sampling.node().idle()) sampling.node().step(sink);
  EXPECT_THAT(sink.groups.at(0).read(columns::kEnvironmentScore), Each(1));
}

TEST_F(TurnsTest, RepliesThatSayNothingChangeNothing) {
  const std::vector<Group> groups = run(params(4, 40, [](const Turn& turn) {
    const bool ended = turn.last.empty() || (turn.last.back() - '!') % 5 != 0;  // by the end of sequence
    return Reply{.text = {}, .done = ended, .reward = {}};
  }));
  const std::vector<Group> alone = run(params_with(4, 40));
  EXPECT_EQ(tokens_of(groups), tokens_of(alone));
  EXPECT_EQ(logprobs_of(groups), logprobs_of(alone));
}

TEST_F(TurnsTest, AReplyThatLeavesNoRoomIsCutAndTheSampleFinishesByLength) {
  Sampling sampling(params(3, 30, [](const Turn&) { return says(std::string(1000, 'y')); }), model_);
  for (const Group& group : sampling.run(kPrompts)) {
    const size_t prompt = kPrompts[static_cast<size_t>(group.index)].size();
    EXPECT_THAT(group.read(columns::kFinish), Each(static_cast<uint8_t>(Finish::kLength)));
    EXPECT_EQ(group.layout.tokens(), 3 * (prompt + 30));
    EXPECT_EQ(sampling.worst(group.index) - sampling.returned(group.index), static_cast<int64_t>(group.layout.tokens()));
  }
  EXPECT_EQ(metric(sampling.metrics(), "rollout/truncated"), 1.0);
}

TEST_F(TurnsTest, CreditThatComesBackIsTheWorstCaseMinusWhatTheGroupBecame) {
  Sampling sampling(params(5, 60, [](const Turn& turn) { return Reply{.text = "ab", .done = turn.index == 1, .reward = {}}; }),
                    model_);
  for (const Group& group : sampling.run(kPrompts)) {
    EXPECT_EQ(sampling.worst(group.index) - sampling.returned(group.index), static_cast<int64_t>(group.layout.tokens()));
    EXPECT_LE(group.layout.tokens(), 5 * (kPrompts[static_cast<size_t>(group.index)].size() + 60));
  }
}

TEST_F(TurnsTest, APoolOfOneWorstSampleIsEnough) {
  GenerateParams settings = params(3, 60, [](const Turn&) { return says("0123456789"); });
  const auto wide = Sampling(settings, model_).run(kPrompts);
  const auto narrow = Sampling(settings, model_, (512 + 60 + 15) / 16).run(kPrompts);
  EXPECT_EQ(tokens_of(narrow), tokens_of(wide));
}

TEST_F(TurnsTest, AfterTheLastTurnThereIsNoReply) {
  GenerateParams settings =
      params(4, 200, [](const Turn& turn) { return Reply{.text = "again", .done = false, .reward = 1 + turn.index}; });
  settings.max_turns = 2;
  Sampling sampling(settings, model_);
  for (const Group& group : sampling.run(kPrompts)) {
    EXPECT_THAT(group.read(columns::kFinish), Each(static_cast<uint8_t>(Finish::kTurnLimit)));
    EXPECT_THAT(group.read(columns::kEnvironmentScore), Each(3));  // rewards of 1 and 2
    for (size_t s = 0; s < 4; ++s) {
      EXPECT_EQ(given_text(group, s, kPrompts[static_cast<size_t>(group.index)].size(), model_->text().tokenizer()), "again");
    }
  }
  EXPECT_EQ(metric(sampling.metrics(), "rollout/turns_mean"), 2.0);
}

TEST_F(TurnsTest, WhatRepliesCountIsRecordedAsTheMeanOverSamplesOfTheirSums) {
  GenerateParams settings = params(4, 200, [](const Turn& turn) {
    Reply reply{.text = {}, .done = turn.index == 2, .reward = {}};
    if (turn.sample < 2) reply.counts["rollout/marbles_mean"] = static_cast<double>(turn.index);
    return reply;
  });
  settings.environment.metrics = {{.name = "rollout/marbles_mean", .kind = engine::Metric::kMean}};
  Sampling sampling(settings, model_);
  sampling.run(kPrompts);
  EXPECT_EQ(metric(sampling.metrics(), "rollout/marbles_mean"), 1.5);  // 0 + 1 + 2 of two samples in four
}

TEST_F(TurnsTest, TheTokensOfATurnAreThoseThatWereSampledInIt) {
  std::mutex mutex;
  std::map<std::pair<int64_t, int64_t>, std::vector<std::vector<int64_t>>> turns;  // by group and sample
  const auto groups = run(params(3, 60, [&](const Turn& turn) {
    EXPECT_EQ(turn.ended_sequence, turn.tokens.back() == 0);
    const std::lock_guard lock(mutex);
    turns[{turn.group, turn.sample}].push_back(turn.tokens);
    return says("re");
  }));
  for (const auto& [place, of_sample] : turns) {
    const auto s = static_cast<size_t>(place.second);
    std::vector<int64_t> tokens = tokens_of_sample(groups[static_cast<size_t>(place.first)], s);
    auto at = tokens.begin() + static_cast<std::ptrdiff_t>(kPrompts[static_cast<size_t>(place.first)].size());
    for (const std::vector<int64_t>& turn : of_sample) {
      ASSERT_TRUE(std::equal(turn.begin(), turn.end(), at));
      at += std::min<std::ptrdiff_t>(std::ssize(turn) + 2, tokens.end() - at);
    }
  }
  EXPECT_EQ(turns.size(), 9u);
}

TEST_F(TurnsTest, ASampleThatIsDoneFinishedAsItsLastTurnDid) {
  Sampling sampling(params(8, 100, [](const Turn&) { return Reply{.text = "unheard", .done = true, .reward = {}}; }), model_);
  for (const Group& group : sampling.run(kPrompts)) {
    for (size_t s = 0; s < 8; ++s) {
      const bool ended = tokens_of_sample(group, s).back() == 0;
      EXPECT_EQ(group.read(columns::kFinish)[s], static_cast<uint8_t>(ended ? Finish::kEndOfSequence : Finish::kStopString));
      EXPECT_THAT(group.read(columns::kResponse)[s], ::testing::Not(HasSubstr("unheard")));
    }
  }
}

// Every character that does not end a turn ends the sample, so a turn that is asked about has one character.
TEST_F(TurnsTest, AStopStringEndsASampleAndNobodyIsAsked) {
  GenerateParams settings = params(4, 200, [](const Turn& turn) {
    if (turn.last.size() != 1) throw UserError("asked about " + turn.last);
    return says("and");
  });
  for (char c = '!'; c <= '~'; ++c) {
    if ((c - '!') % 5 != 0) settings.stop.emplace_back(1, c);
  }
  settings.stop.emplace_back(" ");
  settings.ignore_end_of_sequence = true;
  for (const Group& group : run(settings)) {
    EXPECT_THAT(group.read(columns::kFinish), Each(static_cast<uint8_t>(Finish::kStopString)));
  }
}

TEST_F(TurnsTest, ABaselinePlaysItsTurnsToo) {
  GenerateParams settings = params(2, 40, [](const Turn&) { return says("r"); });
  settings.baseline = true;
  const std::vector<Group> beside = run(settings);
  settings.baseline = false;
  settings.samples_per_prompt = 1;
  settings.temperature = 0;
  const std::vector<Group> greedy = run(settings);
  for (size_t g = 0; g < kPrompts.size(); ++g) {
    EXPECT_EQ(beside[g].read(columns::kBaselineResponse)[0], greedy[g].read(columns::kResponse)[0]);
  }
}

TEST_F(TurnsTest, WhatAnEnvironmentThrowsIsToldWithItsPlace) {
  const auto failing = [](const Turn& turn) -> Reply {
    if (turn.group == 2 && turn.index == 1) throw UserError("no more marbles");
    return says("r");
  };
  EXPECT_THAT([&] { run(params(1, 100, failing)); },
              ThrowsMessage<UserError>(HasSubstr("the environment failed on turn 1 of sample 0 of group 2: no more marbles")));
  const auto breaking = [](const Turn&) -> Reply { throw std::out_of_range("marbles"); };
  EXPECT_THAT([&] { run(params(1, 100, breaking)); },
              ThrowsMessage<UserError>(::testing::ContainsRegex("sample 0 of group [012]: marbles")));
  const auto odd = [](const Turn&) -> Reply { throw 3; };
  EXPECT_THAT([&] { run(params(1, 100, odd)); },
              ThrowsMessage<UserError>(::testing::ContainsRegex(
                  "on turn 0 of sample 0 of group [012]: it threw something that is no std::exception")));
}

TEST_F(TurnsTest, ARewardThatIsNotFiniteIsAnError) {
  const auto script = [](const Turn&) { return Reply{.text = {}, .done = true, .reward = std::nan("")}; };
  EXPECT_THAT([&] { run(params(1, 100, script)); }, ThrowsMessage<UserError>(HasSubstr("its reward is not finite")));
}

TEST_F(TurnsTest, RewardsWhoseSumIsNotFiniteAreAnError) {
  const auto script = [](const Turn& turn) { return Reply{.text = "a", .done = turn.index == 1, .reward = 3e38}; };
  EXPECT_THAT([&] { run(params(1, 100, script)); },
              ThrowsMessage<UserError>(::testing::ContainsRegex(
                  "on turn 1 of sample 0 of group [012]: the rewards of the sample so far add up to more than 32 bits hold")));
}

TEST(EnvironmentCalls, EndsWithCallsThatNobodyTook) {
  std::atomic<int> begun = 0;
  std::promise<void> asked;
  {
    EnvironmentCalls calls(std::make_shared<Scripted>([&, are_asked = asked.get_future().share()](const Turn&) {
      ++begun;
      are_asked.wait();
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      return says("");
    }));
    for (uint64_t id = 0; id < 50; ++id) calls.ask(id, {});
    asked.set_value();
  }
  EXPECT_LT(begun, 50);  // what had not begun is forgotten
}

TEST(EnvironmentCalls, NoneBeginsWhenOneHasFailed) {
  std::atomic<int> begun = 0;
  std::promise<void> failed;
  EnvironmentCalls calls(std::make_shared<Scripted>([&, has_failed = failed.get_future().share()](const Turn& turn) {
    ++begun;
    if (turn.index == 0) throw UserError("no more marbles");
    has_failed.wait();
    return says("");
  }));
  for (int64_t index = 0; index < 50; ++index) calls.ask(static_cast<uint64_t>(index), {.index = index});
  std::vector<EnvironmentCalls::Answer> answers;
  while (answers.empty()) {
    calls.wait_for(std::chrono::milliseconds(10));
    answers = calls.take();
  }
  EXPECT_NE(answers.front().error, nullptr);
  const int begun_before = begun;
  calls.ask(50, {.index = 50});
  failed.set_value();
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  EXPECT_EQ(begun, begun_before);
  EXPECT_LE(begun, 3);
}

TEST(EnvironmentCalls, NoneBeginsThatNobodyNeedsAnyMore) {
  engine::OutsideWork work;
  std::atomic<int> begun = 0;
  EnvironmentCalls calls(std::make_shared<Scripted>([&](const Turn&) { return ++begun, says("yes"); }));
  work.drop_behind(-1);  // the run stops
  for (uint64_t id = 0; id < 10; ++id) calls.ask(id, {.wait = {&work, 0}});
  calls.wait_for(std::chrono::milliseconds(200));
  EXPECT_EQ(begun, 0);
}

TEST(EnvironmentCalls, ATurnKnowsItsNode) {
  EnvironmentCalls calls(std::make_shared<Scripted>([](const Turn& turn) { return says(turn.node); }), nullptr, "play");
  calls.ask(0, {});
  std::vector<EnvironmentCalls::Answer> answers;
  while (answers.empty()) {
    calls.wait_for(std::chrono::milliseconds(10));
    answers = calls.take();
  }
  EXPECT_EQ(answers.front().reply.text, "play");
}

TEST(EnvironmentCalls, ACallThatIsDroppedHasNoAnswer) {
  engine::OutsideWork work;
  work.drop_behind(0);
  EnvironmentCalls calls(std::make_shared<Scripted>([](const Turn& turn) {
    turn.wait.go_on();
    return says("yes");
  }));
  for (const int64_t iteration : {1, 0})
    calls.ask(static_cast<uint64_t>(iteration), {.iteration = iteration, .wait = {&work, iteration}});
  std::vector<EnvironmentCalls::Answer> answers;
  while (answers.empty()) {
    calls.wait_for(std::chrono::milliseconds(10));
    answers = calls.take();
  }
  EXPECT_EQ(answers.front().id, 0);
  EXPECT_EQ(answers.size(), 1);
  EXPECT_FALSE(calls.idle()) << "who waits for the other one would not rest";
}

TEST(EnvironmentCalls, NoMoreAreUnderWayThanTheEnvironmentTakes) {
  std::atomic<int> now = 0, most = 0;
  EnvironmentCalls calls(std::make_shared<Scripted>([&](const Turn&) {
    const int here = ++now;
    for (int seen = most; seen < here && !most.compare_exchange_weak(seen, here);) continue;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    --now;
    return says("");
  }));
  for (uint64_t id = 0; id < 40; ++id) calls.ask(id, {});
  size_t taken = 0;
  while (!calls.idle()) {
    calls.wait_for(std::chrono::seconds(1));
    taken += calls.take().size();
  }
  EXPECT_EQ(taken, 40u);
  EXPECT_LE(most, 3);
}

}  // namespace
}  // namespace sluice::nodes::turns_test
