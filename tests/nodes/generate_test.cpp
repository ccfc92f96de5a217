#include "nodes/generate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "nodes/columns.h"
#include "nodes/logprobs.h"
#include "tests/nodes/tiny_model.h"

namespace sluice::nodes {
namespace {

using engine::Group;
using ::testing::Each;
using testing::floats;
using ::testing::HasSubstr;
using testing::metric;
using testing::needs_of;
using testing::run_node;
using testing::shift_weights;
using testing::tiny_model;
using testing::TinyFolder;

const std::vector<std::string> kPrompts{"2+2=", "a much longer prompt", "x"};

Group prompt_group(int64_t iteration, int64_t index, const std::string& prompt) {
  Group group;
  group.iteration = iteration;
  group.index = index;
  group.layout.end_group();
  group.write(columns::kPrompt)[0] = prompt;
  return group;
}

class CollectingSink final : public engine::Rollout::Sink {
 public:
  void return_credit(int64_t group, int64_t tokens) override { returned[group] += tokens; }
  void finish(Group group) override { groups.push_back(std::move(group)); }
  void worked(int64_t prompt_tokens_read, int64_t tokens_sampled) override {
    ++steps;
    prompt_tokens += prompt_tokens_read;
    sampled_tokens += tokens_sampled;
  }

  int64_t steps = 0;
  int64_t prompt_tokens = 0;
  int64_t sampled_tokens = 0;
  std::map<int64_t, int64_t> returned;
  std::vector<Group> groups;
};

constexpr int64_t kBlockBytes = TinyFolder::kLayers * TinyFolder::kKvHeads * 2 * 16 * TinyFolder::kHeadDim * 4;  // 16 tokens

// The node with what it needs, in one process.
class Sampling {
 public:
  Sampling(const GenerateParams& params, const std::shared_ptr<LanguageModel>& model, int64_t kv_blocks = 256) {
    resources_.node = "generate";
    resources_.seed = 17;
    resources_.kv_bytes = kv_blocks * kBlockBytes;
    resources_.models = {{"actor", model}};
    resources_.metrics = &metrics_;
    node_.emplace(params, resources_);
  }

  // All prompts of one iteration; the groups in order of their index.
  std::vector<Group> run(const std::vector<std::string>& prompts, engine::Iteration iteration = {}) {
    node_->begin_iteration(iteration);
    for (size_t i = 0; i < prompts.size(); ++i) {
      Group group = prompt_group(iteration.index, static_cast<int64_t>(i), prompts[i]);
      worst_[group.index] = node_->worst_tokens(group);
      node_->start(std::move(group));
    }
    while (!node_->idle()) node_->step(sink_);
    node_->end_iteration(iteration);
    std::vector<Group> groups = std::exchange(sink_.groups, {});
    std::ranges::sort(groups, {}, &Group::index);
    return groups;
  }

  Generate& node() { return *node_; }
  const CollectingSink& sink() const { return sink_; }
  int64_t worst(int64_t group) const { return worst_.at(group); }
  int64_t returned(int64_t group) { return sink_.returned[group]; }
  engine::MetricRow metrics() {
    engine::Reducer alone;
    return metrics_.take(alone);
  }

 private:
  engine::MetricsRecorder metrics_;
  engine::NodeResources resources_;
  std::optional<Generate> node_;
  CollectingSink sink_;
  std::map<int64_t, int64_t> worst_;
};

std::vector<int64_t> tokens_of(const std::vector<Group>& groups) {
  std::vector<int64_t> all;
  for (const Group& group : groups) std::ranges::copy(group.read(columns::kTokens), std::back_inserter(all));
  return all;
}

std::vector<float> logprobs_of(const std::vector<Group>& groups) {
  std::vector<float> all;
  for (const Group& group : groups) std::ranges::copy(group.read(columns::kRolloutLogprobs), std::back_inserter(all));
  return all;
}

GenerateParams params_with(int64_t samples, int64_t max_new_tokens) {
  GenerateParams params;
  params.model = "actor";
  params.samples_per_prompt = samples;
  params.max_new_tokens = max_new_tokens;
  return params;
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
    const std::vector<int64_t> prompt = model->tokenizer().encode(kPrompts[g]);
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
  EXPECT_EQ(metric(sampling.metrics(), "truncated"), 1.0);
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
  const auto model = tiny_model(folder.path(), {.kept_versions = 2});
  Sampling sampling(params_with(2, 10), model);
  const auto sampled_with = [&](int64_t version) {
    return tokens_of(sampling.run(kPrompts, {.index = 0, .policy_version = version}));
  };
  const auto before = sampled_with(0);
  shift_weights(*model, 0.2f);
  EXPECT_EQ(sampled_with(0), before);
  model->publish(1);
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
    sampling.node().worst_tokens(prompt_group(0, 12, "1234567"));
    FAIL() << "accepted";
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(), HasSubstr("group 12 has 7 tokens, max_prompt_tokens is 6"));
    EXPECT_THAT(error.what(), HasSubstr("max_prompt_tokens >= 7"));
  }
}

TEST(Generate, AnEmptyPromptIsAnErrorWithItsGroup) {
  const TinyFolder folder;
  Sampling sampling(params_with(1, 5), tiny_model(folder.path(), {}));
  EXPECT_THAT([&] { sampling.node().worst_tokens(prompt_group(0, 3, "")); },
              ::testing::ThrowsMessage<UserError>(HasSubstr("prompt of group 3 is empty")));
}

TEST(Generate, WeightsThatAreNotFiniteAreAnErrorThatSaysSo) {
  const TinyFolder folder;
  const auto model = tiny_model(folder.path(), {});
  shift_weights(*model, std::numeric_limits<float>::quiet_NaN());
  Sampling sampling(params_with(1, 5), model);
  EXPECT_THAT([&] { sampling.run(kPrompts); }, ::testing::ThrowsMessage<UserError>(HasSubstr("not finite")));
}

TEST(Generate, ThePoolHasTheBytesThatThePlanPromised) {
  const TinyFolder folder;
  Sampling sampling(params_with(4, 20), tiny_model(folder.path(), {}), 37);
  EXPECT_EQ(sampling.node().take_peak_bytes(), 37 * kBlockBytes);
}

TEST(Generate, BytesInUseAtTheSameTimeAreRecordedForEachIteration) {
  const TinyFolder folder;
  GenerateParams params = params_with(4, 20);
  params.ignore_end_of_sequence = true;
  Sampling sampling(params, tiny_model(folder.path(), {}));
  sampling.run({"a"});  // four samples of 20 cached tokens: two blocks each
  EXPECT_EQ(metric(sampling.metrics(), "kv_used_bytes_max"), 8 * kBlockBytes);
  sampling.run({"a", "b"}, {.index = 1});
  EXPECT_EQ(metric(sampling.metrics(), "kv_used_bytes_max"), 16 * kBlockBytes);
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
    read += static_cast<int64_t>(group.layout.tokens() - group.layout.actions());
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

}  // namespace
}  // namespace sluice::nodes
