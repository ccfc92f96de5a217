// Samples that run while newer weights are published: [schedule] update = "immediately".
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <future>

#include "nodes/forward/logprobs.h"
#include "tests/nodes/sampling.h"

namespace sluice::nodes::generate_update_test {
namespace {

using engine::Group;
using engine::KvAtUpdate;
using testing::CollectingSink;
using testing::kBlockBytes;
using testing::params_with;
using testing::prompt_group;
using testing::publish;
using testing::shift_weights;
using testing::tiny_model;
using testing::TinyFolder;

constexpr float kShift = .02F;  // of each weight, from version 0 to version 1

class GenerateUpdates : public ::testing::Test {
 protected:
  GenerateUpdates() : model_(tiny_model(folder_.path(), {.optimizer = models::AdamWOptions(), .readable_versions = 2})) {}

  // Three groups of two responses, of which four run at a time. Version 1 is published after the seventh step.
  std::vector<Group> sample(KvAtUpdate kv, engine::WeightUpdate update = engine::WeightUpdate::kImmediately) {
    GenerateParams params = params_with(/*samples=*/2, /*max_new_tokens=*/20);
    params.ignore_end_of_sequence = params.token_versions = true;
    params.max_running_samples = 4;
    engine::NodeResources resources{.node = "generate", .seed = 17, .kv_bytes = 64 * kBlockBytes};
    resources.update = update;
    resources.update_kv = kv;
    resources.models = {{"actor", model_}};
    resources.metrics = &metrics_;
    Generate node(params, resources);
    node.begin_iteration({});
    for (int64_t group = 0; group < 3; ++group) node.start(prompt_group(0, group, "group " + std::to_string(group)));
    CollectingSink sink;
    while (!node.idle()) {
      node.step(sink);
      if (sink.steps != 7) continue;
      shift_weights(*model_, kShift);
      publish(*model_, 1);
    }
    node.end_iteration({});
    std::ranges::sort(sink.groups, {}, &Group::index);
    return std::move(sink.groups);
  }

  // Of the actions, one group after the other, by a forward pass with the weights of a version alone.
  std::vector<float> logprobs_under(int64_t version, const std::vector<Group>& groups) {
    const auto frozen = tiny_model(folder_.path(), {});
    if (version == 1) shift_weights(*frozen, kShift);
    return testing::floats(testing::run_node<Logprobs>(LogprobsParams{.model = "actor"}, {{"actor", frozen}}, groups),
                           "reference_logprobs");
  }

  static std::vector<int64_t> versions_of(const std::vector<Group>& groups) {
    std::vector<int64_t> all;
    for (const Group& group : groups) std::ranges::copy(group.read(columns::kTokenVersions), std::back_inserter(all));
    return all;
  }

  TinyFolder folder_;
  std::shared_ptr<LanguageModel> model_;
  engine::MetricsRecorder metrics_;
};

// The response that runs goes on, read again with the new weights: each token's log-probability is that of its version, to the
// bit.
TEST_F(GenerateUpdates, EachTokenIsOfTheVersionThatItNames) {
  const std::vector<Group> groups = sample(KvAtUpdate::kReadAgain);
  const std::vector<int64_t> versions = versions_of(groups);
  const std::vector<float> sampled = testing::logprobs_of(groups), old = logprobs_under(0, groups),
                           renewed = logprobs_under(1, groups);
  ASSERT_EQ(versions.size(), 120U);
  EXPECT_THAT(std::vector(versions.begin(), versions.begin() + 20), ::testing::Contains(0));
  EXPECT_EQ(versions[19], 1) << "the first response ends with new weights";
  for (size_t i = 0; i < versions.size(); ++i) ASSERT_EQ(sampled[i], (versions[i] == 0 ? old : renewed)[i]) << "action " << i;
  EXPECT_EQ(testing::metric(metrics_.take(), "engine/weight_updates"), 1);
}

// What was sampled with old weights stays in the cache; who starts later has nothing of them.
TEST_F(GenerateUpdates, KeptKeysAndValuesAreOfThoseThatRan) {
  const std::vector<Group> groups = sample(KvAtUpdate::kKeep);
  const std::vector<int64_t> versions = versions_of(groups);
  const std::vector<float> sampled = testing::logprobs_of(groups), old = logprobs_under(0, groups),
                           renewed = logprobs_under(1, groups);
  bool differs = false;
  for (size_t i = 0; i < versions.size(); ++i) {
    const bool started_late = versions[i - i % 20] == 1;
    if (versions[i] == 0) ASSERT_EQ(sampled[i], old[i]) << "action " << i;
    if (started_late) ASSERT_EQ(sampled[i], renewed[i]) << "action " << i;
    differs |= versions[i] == 1 && !started_late && sampled[i] != renewed[i];
  }
  EXPECT_TRUE(differs);
}

TEST_F(GenerateUpdates, ExactSamplesAreOfOneVersion) {
  const std::vector<Group> groups = sample(KvAtUpdate::kKeep, engine::WeightUpdate::kExact);
  EXPECT_THAT(versions_of(groups), ::testing::Each(0));
  EXPECT_EQ(testing::logprobs_of(groups), logprobs_under(0, groups));
}

// Memory that a step reads is not taken for another version.
TEST_F(GenerateUpdates, AVersionThatIsHeldStays) {
  SampledWeights::Lease held = model_->sampled().newest();
  publish(*model_, 1);
  std::future<void> second = std::async(std::launch::async, [&] { publish(*model_, 2); });
  EXPECT_EQ(second.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout);
  EXPECT_EQ(held.version, 0);
  held = {};
  second.get();
  EXPECT_EQ(model_->sampled().newest().version, 2);
}

}  // namespace
}  // namespace sluice::nodes::generate_update_test
