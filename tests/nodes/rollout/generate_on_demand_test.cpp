#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "base/numbers/random.h"
#include "engine/contract/columns/token_budget.h"
#include "tests/nodes/sampling.h"

namespace sluice::nodes::generate_on_demand_test {
namespace {

using engine::Group;
using testing::kBlockBytes;
using testing::logprobs_of;
using testing::metric;
using testing::params_with;
using testing::prompt_group;
using testing::tiny_model;
using testing::TinyFolder;
using testing::tokens_of;

/// A rollout with a token budget, as the engine drives it. Groups that are handed on keep their credit for a while.
class OnDemand final : public engine::Rollout::Sink {
 public:
  OnDemand(const GenerateParams& params, const std::shared_ptr<LanguageModel>& model, int64_t budget, uint64_t seed)
      : budget_(budget, [] {}), random_(seed, 0) {
    engine::NodeResources resources;
    resources.node = "generate";
    resources.seed = 17;
    resources.kv_bytes = (budget / 16 + params.max_running_samples + 40) * kBlockBytes;
    resources.admission = engine::Admission::kOnDemand;
    resources.models = {{"actor", model}};
    resources.metrics = &metrics_;
    node_.emplace(params, resources);
  }

  std::vector<Group> run(const std::vector<std::string>& prompts) {
    node_->begin_iteration({});
    size_t next = 0;
    while (next < prompts.size() || !node_->idle()) {
      while (next < prompts.size() && !refused_ && admit(prompt_group(0, static_cast<int64_t>(next), prompts[next]))) ++next;
      refused_ = false;
      if (!node_->idle() && !node_->blocked())
        node_->step(*this);
      else if (node_->blocked())
        release_all(), node_->step(*this);
      else
        release_all();
      if (random_.below(4) == 0) release_all();
    }
    node_->end_iteration({});
    return std::exchange(done_, {});
  }

  engine::MetricRow metrics() { return metrics_.take(); }

  void return_credit(int64_t group, int64_t tokens) override {
    ASSERT_LE(tokens, credit_.at(group));
    credit_[group] -= tokens;
    budget_.release(tokens);
  }
  bool take_credit(int64_t group, int64_t tokens) override {
    if (!budget_.try_acquire(tokens)) return !(refused_ = true);
    credit_[group] += tokens;
    return true;
  }
  void finish(Group group) override {
    EXPECT_EQ(group.index, static_cast<int64_t>(done_.size()));  // in order
    EXPECT_LE(static_cast<int64_t>(group.layout.tokens()), credit_.at(group.index));
    behind_ += credit_[group.index];
    done_.push_back(std::move(group));
  }
  void worked(int64_t, int64_t) override {}

 private:
  bool admit(Group group) {
    EXPECT_TRUE(node_->wants(group));
    EXPECT_LE(node_->least_tokens(group), node_->worst_tokens(group));
    const int64_t tokens = node_->least_tokens(group);
    if (!budget_.try_acquire(tokens)) return false;
    credit_[group.index] = tokens;
    node_->start(std::move(group));
    return true;
  }

  void release_all() { budget_.release(std::exchange(behind_, 0)); }

  engine::TokenBudget budget_;
  RandomStream random_;
  engine::MetricsRecorder metrics_;
  std::optional<Generate> node_;
  std::map<int64_t, int64_t> credit_;
  int64_t behind_ = 0;  // credit of groups that were handed on
  bool refused_ = false;
  std::vector<Group> done_;
};

std::vector<std::string> random_prompts(RandomStream& random, size_t count) {
  std::vector<std::string> prompts;
  for (size_t i = 0; i < count; ++i) prompts.emplace_back(1 + random.below(30), static_cast<char>('a' + random.below(5)));
  return prompts;
}

// Whatever the budget is, from that of one group on.
TEST(GenerateOnDemand, ATextIsThatOfItsSampleAloneHoweverOftenItWasPreempted) {
  const TinyFolder folder;
  const auto model = tiny_model(folder.path(), {});
  double preempted = 0;
  for (uint64_t seed = 0; seed < 25; ++seed) {
    RandomStream random(seed, 1);
    GenerateParams params = params_with(1 + static_cast<int64_t>(random.below(5)), 5 + static_cast<int64_t>(random.below(70)));
    params.max_prompt_tokens = 32;
    params.max_running_samples = 1 + static_cast<int64_t>(random.below(12));
    params.baseline = random.below(3) == 0;
    const std::vector<std::string> prompts = random_prompts(random, 6);
    const std::vector<Group> expected = testing::Sampling(params, model).run(prompts);
    const int64_t group = params.responses_per_prompt() * (params.max_prompt_tokens + params.max_new_tokens);
    OnDemand rollout(params, model, group + static_cast<int64_t>(random.below(static_cast<uint64_t>(group))), seed);
    const std::vector<Group> groups = rollout.run(prompts);
    ASSERT_EQ(tokens_of(groups), tokens_of(expected)) << seed;
    ASSERT_EQ(logprobs_of(groups), logprobs_of(expected)) << seed;
    preempted += metric(rollout.metrics(), "engine/preempted_samples");
  }
  EXPECT_GT(preempted, 20);
}

class Echo final : public Environment {
 public:
  Reply reply(const Turn& turn) const override { return {.text = "<" + turn.last + ">", .done = turn.index == 3, .reward = 1}; }
  std::vector<std::string> turn_ends() const override {
    std::vector<std::string> ends;
    for (int c = '!'; c <= '~'; c += 5) ends.emplace_back(1, static_cast<char>(c));
    return ends;
  }
  int64_t most_calls() const override { return 3; }
};

// Replies come when they come, take credit for all their tokens at once, and may find their sample preempted.
TEST(GenerateOnDemand, SamplesWithRepliesAreTheSameToo) {
  const TinyFolder folder;
  const auto model = tiny_model(folder.path(), {});
  for (uint64_t seed = 0; seed < 10; ++seed) {
    RandomStream random(seed, 2);
    GenerateParams params = params_with(3, 60);
    params.max_prompt_tokens = 32;
    params.environment.type = "echo";
    params.environment.object = std::make_shared<Echo>();
    const std::vector<std::string> prompts = random_prompts(random, 5);
    const std::vector<Group> expected = testing::Sampling(params, model).run(prompts);
    OnDemand rollout(params, model, 3 * 92 + static_cast<int64_t>(random.below(100)), seed);
    const std::vector<Group> groups = rollout.run(prompts);
    ASSERT_EQ(tokens_of(groups), tokens_of(expected)) << seed;
    ASSERT_EQ(logprobs_of(groups), logprobs_of(expected)) << seed;
  }
}

}  // namespace
}  // namespace sluice::nodes::generate_on_demand_test
