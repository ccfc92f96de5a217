#include "nodes/rollout/generate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "base/files/file.h"
#include "base/json/json.h"
#include "nodes/builtin.h"
#include "nodes/columns/columns.h"
#include "nodes/forward/logprobs.h"
#include "tests/nodes/sampling.h"

namespace sluice::nodes::generate_test {
namespace {

using engine::Group;
using ::testing::Each;
using ::testing::ElementsAre;
using testing::floats;
using ::testing::HasSubstr;
using testing::kBlockBytes;
using testing::logprobs_of;
using testing::metric;
using testing::needs_of;
using testing::params_with;
using testing::prompt_group;
using testing::publish;
using testing::run_node;
using testing::Sampling;
using testing::shift_weights;
using testing::tiny_model;
using testing::TinyFolder;
using testing::tokens_of;
using testing::tokens_of_sample;

const std::vector<std::string> kPrompts{"2+2=", "a much longer prompt", "x"};

// Some two characters that follow each other in a response, but not at its begin.
std::string two_characters_of(const std::vector<Group>& groups) {
  for (const Group& group : groups) {
    for (const std::string& response : group.read(columns::kResponse)) {
      if (response.size() > 12) return response.substr(10, 2);
    }
  }
  return "??";
}

// Its tokenizer puts <eos> in front of each text.
TEST(Generate, PromptsThatAChatTemplateWroteGetNoSpecialTokensUnlessItIsTold) {
  const TinyFolder folder;
  Json tokenizer = read_json(folder.path() / "tokenizer.json");
  tokenizer["post_processor"] = parse_json(
      R"({"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<eos>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
          "pair": [], "special_tokens": {"<eos>": {"id": "<eos>", "ids": [0], "tokens": ["<eos>"]}}})",
      "the test");
  write_file_atomically(folder.path() / "tokenizer.json", tokenizer.dump());
  Group text = prompt_group(0, 0, "123456"), chat = prompt_group(0, 1, "123456");
  text.write(columns::kMessages)[0] = "";
  chat.write(columns::kMessages)[0] = R"([{"role": "user", "content": "123456"}])";
  GenerateParams params = params_with(1, 5);
  params.max_prompt_tokens = 6;
  params.prompt_too_long = TooLong::kDrop;
  const auto fits = [&](const Group& group) { return Sampling(params, tiny_model(folder.path(), {})).node().wants(group); };
  EXPECT_FALSE(fits(text));
  EXPECT_TRUE(fits(chat));
  params.add_special_tokens = true;
  EXPECT_FALSE(fits(chat));
  params.add_special_tokens = false;
  EXPECT_TRUE(fits(text));
}

TEST(Generate, LogprobsOfSamplesAreThoseOfTheLogprobsNode) {
  const TinyFolder folder;
  const auto model = tiny_model(folder.path(), {});
  GenerateParams params = params_with(3, 20);
  params.temperature = 0.7;
  const std::vector<Group> groups = Sampling(params, model).run(kPrompts);
  const auto again = run_node<Logprobs>(LogprobsParams{.model = "actor", .temperature = 0.7}, {{"actor", model}}, groups);
  EXPECT_THAT(floats(again, "reference_logprobs"), ::testing::Pointwise(::testing::FloatNear(1e-4f), logprobs_of(groups)));
}

TEST(Generate, TokensArePromptThenResponseAndOnlyTheResponseIsActions) {
  const TinyFolder folder;
  const auto model = tiny_model(folder.path(), {});
  const std::vector<Group> groups = Sampling(params_with(2, 5), model).run(kPrompts);
  ASSERT_EQ(groups.size(), kPrompts.size());
  for (size_t g = 0; g < groups.size(); ++g) {
    const std::vector<int64_t> prompt = model->text().tokenizer().encode(kPrompts[g]);
    const auto tokens = groups[g].read(columns::kTokens);
    ASSERT_EQ(groups[g].layout.samples(), 2u);
    for (const engine::Range sample : groups[g].layout.tokens_by_sample()) {
      EXPECT_TRUE(std::ranges::equal(prompt, tokens.subspan(sample.begin, prompt.size())));
    }
    const auto actions = groups[g].layout.actions_by_sample();
    EXPECT_EQ(groups[g].layout.tokens(), 2 * prompt.size() + groups[g].layout.actions());
    EXPECT_EQ(groups[g].layout.action_tokens[actions[0].begin], static_cast<int64_t>(prompt.size()));
  }
}

TEST(Generate, ASampleThatEndsHasItsEndAmongTheActionsAndNotInTheText) {
  const TinyFolder folder;
  const std::vector<Group> groups = Sampling(params_with(8, 150), tiny_model(folder.path(), {})).run(kPrompts);
  int64_t ended = 0;
  for (const Group& group : groups) {
    const auto tokens = group.read(columns::kTokens);
    const auto finish = group.read(columns::kFinish);
    const auto responses = group.read(columns::kResponse);
    const auto by_sample = group.layout.tokens_by_sample();
    const auto actions = group.layout.actions_by_sample();
    for (size_t s = 0; s < by_sample.size(); ++s) {
      const bool ends = tokens[by_sample[s].end - 1] == 0;
      EXPECT_EQ(finish[s], ends ? 0 : 1);
      EXPECT_EQ(responses[s].size(), actions[s].size() - (ends ? 1 : 0)) << responses[s];  // one character a token
      ended += ends;
    }
  }
  EXPECT_GT(ended, 0);
}

TEST(Generate, EverySampleRunsToItsLengthWhenTheEndIsIgnored) {
  const TinyFolder folder;
  GenerateParams params = params_with(8, 100);
  params.ignore_end_of_sequence = true;
  Sampling sampling(params, tiny_model(folder.path(), {}));
  for (const Group& group : sampling.run(kPrompts)) {
    EXPECT_EQ(group.layout.actions(), 800u);
    EXPECT_THAT(group.read(columns::kFinish), Each(1));
  }
  EXPECT_EQ(metric(sampling.metrics(), "rollout/truncated"), 1.0);
}

TEST(Generate, CreditThatComesBackIsTheWorstCaseMinusWhatTheGroupBecame) {
  const TinyFolder folder;
  Sampling sampling(params_with(8, 150), tiny_model(folder.path(), {}));
  int64_t returned = 0;
  for (const Group& group : sampling.run(kPrompts)) {
    EXPECT_EQ(sampling.worst(group.index) - sampling.returned(group.index), static_cast<int64_t>(group.layout.tokens()));
    returned += sampling.returned(group.index);
  }
  EXPECT_GT(returned, 0);
}

TEST(Generate, SamplesComeFromThePublishedWeights) {
  const TinyFolder folder;
  const auto model = tiny_model(folder.path(), {.optimizer = models::AdamWOptions{}, .readable_versions = 2});
  Sampling sampling(params_with(2, 10), model);
  const auto sampled_with = [&](int64_t version) {
    return tokens_of(sampling.run(kPrompts, {.index = 0, .policy_version = version}));
  };
  const auto before = sampled_with(0);
  shift_weights(*model, 0.2f);
  EXPECT_EQ(sampled_with(0), before);
  publish(*model, 1);
  EXPECT_EQ(sampled_with(0), before);
  EXPECT_NE(sampled_with(1), before);
}

TEST(Generate, ASampleDoesNotDependOnTheGroupsBesideIt) {
  const TinyFolder folder;
  const auto model = tiny_model(folder.path(), {});
  const auto together = Sampling(params_with(2, 10), model).run(kPrompts);
  GenerateParams one_at_a_time = params_with(2, 10);
  one_at_a_time.max_running_samples = 1;
  const auto alone = Sampling(one_at_a_time, model).run(kPrompts);
  EXPECT_EQ(tokens_of(alone), tokens_of(together));
  EXPECT_EQ(logprobs_of(alone), logprobs_of(together));
}

TEST(Generate, TheSamplesOfAGroupAndOfAnotherIterationDiffer) {
  const TinyFolder folder;
  Sampling sampling(params_with(2, 30), tiny_model(folder.path(), {}));
  const Group first = sampling.run({"a"}, {.index = 0})[0];
  const auto by_sample = first.layout.tokens_by_sample();
  const auto tokens = first.read(columns::kTokens);
  EXPECT_FALSE(std::ranges::equal(tokens.subspan(by_sample[0].begin, by_sample[0].size()),
                                  tokens.subspan(by_sample[1].begin, by_sample[1].size())));
  EXPECT_NE(tokens_of(sampling.run({"a"}, {.index = 1})), tokens_of({first}));
}

TEST(Generate, ARunRepeatsBitForBit) {
  const TinyFolder folder;
  const auto once = Sampling(params_with(3, 20), tiny_model(folder.path(), {})).run(kPrompts);
  const auto twice = Sampling(params_with(3, 20), tiny_model(folder.path(), {})).run(kPrompts);
  EXPECT_EQ(tokens_of(once), tokens_of(twice));
  EXPECT_EQ(logprobs_of(once), logprobs_of(twice));
}

TEST(Generate, APromptThatIsTooLongIsAnErrorWithGroupLengthAndRemedy) {
  const TinyFolder folder;
  GenerateParams params = params_with(1, 5);
  params.max_prompt_tokens = 6;
  Sampling sampling(params, tiny_model(folder.path(), {}));
  try {
    sampling.node().wants(prompt_group(0, 12, "1234567"));
    FAIL() << "accepted";
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(), HasSubstr("group 12 has 7 tokens, max_prompt_tokens is 6"));
    EXPECT_THAT(error.what(), HasSubstr("max_prompt_tokens >= 7"));
  }
}

TEST(Generate, AnEmptyPromptIsAnErrorWithItsGroup) {
  const TinyFolder folder;
  Sampling sampling(params_with(1, 5), tiny_model(folder.path(), {}));
  EXPECT_THAT([&] { sampling.node().wants(prompt_group(0, 3, "")); },
              ::testing::ThrowsMessage<UserError>(HasSubstr("prompt of group 3 is empty")));
}

TEST(Generate, APromptThatIsTooLongIsDroppedAndCountedWhereThatIsAskedFor) {
  const TinyFolder folder;
  GenerateParams params = params_with(2, 5);
  const auto model = tiny_model(folder.path(), {});
  const std::vector<engine::Group> all = Sampling(params, model).run({"12", "1234567", "345"});
  params.max_prompt_tokens = 6;
  params.prompt_too_long = TooLong::kDrop;
  Sampling sampling(params, model);
  const std::vector<engine::Group> kept = sampling.run({"12", "1234567", "345"});
  ASSERT_EQ(kept.size(), 2u);
  EXPECT_EQ(kept[1].index, 2);
  EXPECT_EQ(tokens_of(kept), tokens_of({all[0], all[2]}));  // the others are what they were
  EXPECT_EQ(metric(sampling.metrics(), "rollout/dropped_prompts"), 1);
}

TEST(Generate, WeightsThatAreNotFiniteAreAnErrorThatSaysSo) {
  const TinyFolder folder;
  const auto model = tiny_model(folder.path(), {.optimizer = models::AdamWOptions{}});
  shift_weights(*model, std::numeric_limits<float>::quiet_NaN());
  publish(*model, 1);
  Sampling sampling(params_with(1, 5), model);
  EXPECT_THAT([&] { sampling.run(kPrompts, {.policy_version = 1}); },
              ::testing::ThrowsMessage<UserError>(HasSubstr("not finite")));
}

TEST(Generate, ThePoolHasTheBytesThatThePlanPromised) {
  const TinyFolder folder;
  Sampling sampling(params_with(4, 20), tiny_model(folder.path(), {}), 37);
  EXPECT_EQ(sampling.node().pool_bytes().held, 37 * kBlockBytes);
}

TEST(Generate, BytesInUseAtTheSameTimeAreRecordedForEachIteration) {
  const TinyFolder folder;
  GenerateParams params = params_with(4, 20);
  params.ignore_end_of_sequence = true;
  Sampling sampling(params, tiny_model(folder.path(), {}));
  sampling.run({"a"});  // four samples of 20 cached tokens: two blocks each
  EXPECT_EQ(metric(sampling.metrics(), "memory/kv_used_bytes_max"), 8 * kBlockBytes);
  sampling.run({"a", "b"}, {.index = 1});
  EXPECT_EQ(metric(sampling.metrics(), "memory/kv_used_bytes_max"), 16 * kBlockBytes);
}

TEST(Generate, APoolThatDoesNotHoldASampleIsAnInternalError) {
  const TinyFolder folder;
  EXPECT_THROW(Sampling(params_with(4, 20), tiny_model(folder.path(), {}), 33), InternalError);  // 512 + 20 tokens need 34
}

TEST(Generate, EveryStepTellsWhatItDid) {
  const TinyFolder folder;
  const auto model = tiny_model(folder.path(), {});
  Sampling sampling(params_with(3, 9), model);
  int64_t read = 0, sampled = 0;
  for (const Group& group : sampling.run(kPrompts)) {
    sampled += static_cast<int64_t>(group.layout.actions());
    read += static_cast<int64_t>(group.layout.tokens() - group.layout.actions()) / 3;  // once for the three samples
  }
  EXPECT_EQ(sampling.sink().prompt_tokens, read);
  EXPECT_EQ(sampling.sink().sampled_tokens, sampled);
  EXPECT_LE(sampling.sink().steps, 9);  // all samples run side by side
}

TEST(Generate, GreedySamplingAgreesWithLogprobsOfTemperatureOne) {
  GenerateParams params = params_with(4, 12);
  params.temperature = 0;
  EXPECT_EQ(needs_of<Generate>(params).must_agree.at("temperature"), 1.0);
  params.temperature = 0.5;
  EXPECT_EQ(needs_of<Generate>(params).must_agree.at("temperature"), 0.5);
}

TEST(Generate, AWorstSampleIsTheLongestPromptAndTheLongestResponse) {
  const engine::NodeNeeds needs = needs_of<Generate>(params_with(4, 12));
  EXPECT_EQ(needs.worst_sample_tokens, 512 + 12);
  EXPECT_EQ(needs.samples_per_group, 4);
}

TEST(Generate, AStepAndTheRunningSamplesAreBoundedForThePlan) {
  GenerateParams params = params_with(4, 12);
  params.max_running_samples = 100;
  EXPECT_EQ(needs_of<Generate>(params).running_samples, 100);
  EXPECT_EQ(needs_of<Generate>(params).step_tokens, 2048);
  params.max_running_samples = 3000;
  EXPECT_EQ(needs_of<Generate>(params).step_tokens, 3000);  // each decodes one token
}

TEST(Generate, ASampleEndsWithTheTokenThatCompletesAStopStringWhichItKeeps) {
  const TinyFolder folder;
  const auto model = tiny_model(folder.path(), {});
  GenerateParams params = params_with(16, 60);
  params.ignore_end_of_sequence = true;
  const std::vector<Group> whole = Sampling(params, model).run(kPrompts);
  params.stop = {"never written", two_characters_of(whole)};
  Sampling sampling(params, model);
  const std::vector<Group> stopped = sampling.run(kPrompts);
  int64_t stops = 0;
  for (size_t g = 0; g < whole.size(); ++g) {
    for (size_t s = 0; s < whole[g].layout.samples(); ++s) {
      const std::string& text = whole[g].read(columns::kResponse)[s];
      const size_t found = text.find(params.stop[1]);
      const bool stops_here = found != std::string::npos;
      EXPECT_EQ(stopped[g].read(columns::kResponse)[s], stops_here ? text.substr(0, found + 2) : text);
      const std::vector<int64_t> all = tokens_of_sample(whole[g], s), kept = tokens_of_sample(stopped[g], s);
      EXPECT_TRUE(std::equal(kept.begin(), kept.end(), all.begin()));
      const std::string last = model->text().tokenizer().decode(std::span(kept).last(1));
      EXPECT_TRUE(!stops_here || last == params.stop[1].substr(1)) << last;
      EXPECT_EQ(stopped[g].read(columns::kFinish)[s], stops_here ? 2 : 1);
      stops += stops_here;
    }
  }
  EXPECT_GT(stops, 0);
  EXPECT_NEAR(metric(sampling.metrics(), "rollout/stopped"), static_cast<double>(stops) / 48, 1e-9);
}

TEST(Generate, CreditOfAStoppedSampleComesBack) {
  const TinyFolder folder;
  const auto model = tiny_model(folder.path(), {});
  GenerateParams params = params_with(8, 100);
  params.stop = {two_characters_of(Sampling(params, model).run(kPrompts))};
  Sampling sampling(params, model);
  for (const Group& group : sampling.run(kPrompts)) {
    EXPECT_EQ(sampling.worst(group.index) - sampling.returned(group.index), static_cast<int64_t>(group.layout.tokens()));
  }
}

TEST(Generate, TheBaselineIsTheResponseAtTemperatureZero) {
  const TinyFolder folder;
  const auto model = tiny_model(folder.path(), {});
  GenerateParams params = params_with(1, 40);
  params.temperature = 0;
  const std::vector<Group> greedy = Sampling(params, model).run(kPrompts);
  params = params_with(3, 40);
  params.baseline = true;
  const std::vector<Group> sampled = Sampling(params, model).run(kPrompts);
  for (size_t g = 0; g < kPrompts.size(); ++g) {
    EXPECT_EQ(sampled[g].read(columns::kBaselineResponse)[0], greedy[g].read(columns::kResponse)[0]);
  }
}

TEST(Generate, ABaselineChangesNothingOfTheSamplesBesideIt) {
  const TinyFolder folder;
  const auto model = tiny_model(folder.path(), {});
  GenerateParams params = params_with(3, 40);
  Sampling without(params, model);
  const std::vector<Group> alone = without.run(kPrompts);
  params.baseline = true;
  Sampling with(params, model);
  const std::vector<Group> beside = with.run(kPrompts);
  EXPECT_EQ(tokens_of(beside), tokens_of(alone));
  EXPECT_EQ(logprobs_of(beside), logprobs_of(alone));
  EXPECT_EQ(metric(with.metrics(), "rollout/response_length_mean"), metric(without.metrics(), "rollout/response_length_mean"));
}

TEST(Generate, ABaselineTakesCreditUntilItEnds) {
  const TinyFolder folder;
  GenerateParams params = params_with(3, 40);
  params.baseline = true;
  Sampling sampling(params, tiny_model(folder.path(), {}));
  for (const Group& group : sampling.run(kPrompts)) {
    const auto prompt = static_cast<int64_t>(kPrompts[static_cast<size_t>(group.index)].size());
    EXPECT_EQ(sampling.worst(group.index), 4 * (prompt + 40));
    EXPECT_EQ(sampling.worst(group.index) - sampling.returned(group.index), static_cast<int64_t>(group.layout.tokens()));
  }
  EXPECT_EQ(needs_of<Generate>(params).samples_per_group, 3);
  EXPECT_EQ(needs_of<Generate>(params).side_samples, 1);
}

std::vector<std::string> problems_of(std::vector<std::pair<std::string, engine::Value>> keys) {
  engine::Registry registry;
  register_builtin(registry);
  engine::Table table;
  keys.push_back({"model", {std::string("actor"), {}, {}}});
  keys.push_back({"max_new_tokens", {int64_t{9}, {}, {}}});
  for (auto& [key, value] : keys) table.entries.push_back({key, {}, std::move(value)});
  Problems problems;
  engine::BindContext context{registry, problems, "the node"};
  registry.find("generate")->bind(table, context);
  std::vector<std::string> messages;
  for (const Problem& problem : problems) messages.push_back(problem.message);
  return messages;
}

engine::Value strings(std::vector<std::string> texts) {
  engine::Array array;
  for (std::string& text : texts) array.push_back({std::move(text), {}, {}});
  return {std::move(array), {}, {}};
}

engine::Value text(std::string text) { return {std::move(text), {}, {}}; }

TEST(Generate, SettingsOfTurnsWithoutAnEnvironmentAreRefused) {
  EXPECT_THAT(problems_of({}), ::testing::IsEmpty());
  EXPECT_THAT(problems_of({{"turn_ends", strings({"x"})}}), ElementsAre("turn_ends has no effect without an environment"));
  EXPECT_THAT(problems_of({{"max_turns", {int64_t{3}, {}, {}}}}), ElementsAre("max_turns has no effect without an environment"));
  EXPECT_THAT(problems_of({{"max_turns", {int64_t{3}, {}, {}}}, {"environment", text("calculator")}}), ::testing::IsEmpty());
}

TEST(Generate, AStopStringThatIsEmptyOrHidesTheEndOfATurnIsRefused) {
  EXPECT_THAT(problems_of({{"stop", strings({"x", ""})}}), ElementsAre(HasSubstr("stop has an empty string")));
  EXPECT_THAT(problems_of({{"stop", strings({"/calc"})}, {"environment", text("calculator")}}),
              ElementsAre("\"/calc\" ends the sample before \"</calc>\" could end a turn"));
}

}  // namespace
}  // namespace sluice::nodes::generate_test
