#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <thread>

#include "models/devices/streams.h"
#include "models/folder/folder.h"
#include "nodes/forward/logprobs.h"
#include "nodes/forward/values.h"
#include "nodes/train/train_sft.h"
#include "tests/models/devices.h"
#include "tests/nodes/sampling.h"

namespace sluice::nodes::nodes_test {
namespace {

using testing::all_weights;
using ::testing::FloatNear;
using testing::floats;
using testing::mixed_groups;
using ::testing::Pointwise;
using testing::run_node;
using testing::tiny_model;
using testing::TinyFolder;
using testing::TinyOptions;

// What nodes give with a model on a device is, to rounding, what they give with the same model on the CPU.
class NodesOnDevice : public models::devices::OnDevice {
 protected:
  std::shared_ptr<LanguageModel> model(TinyOptions options, at::Device device) const {
    options.device = device;
    return tiny_model(folder_.path(), options);
  }

  void expect_published(int64_t readable) const {
    const TinyOptions options{.optimizer = models::AdamWOptions{.learning_rate = 1}, .readable_versions = readable};
    const auto policy = model(options, device());
    TrainedModel& trained = testing::trained(*policy);
    const at::Tensor& weights = trained.optimizer().parameters().weight_buffer();
    const auto on_own_stream = [&](const std::function<void()>& work) {
      std::jthread([&] {
        models::use_own_streams({device().str()}, models::StreamOrder::kUsual);
        work();
      });
    };
    for (int version = 1; version <= 20; ++version) {
      fake::set_schedule(static_cast<uint64_t>(version));
      on_own_stream([&] {
        const at::NoGradGuard no_gradient;
        weights.fill_(version);
        trained.optimizer().parameters().gradient_buffer().fill_(1);
        trained.step(1);
        // AdamW's step of a steady gradient is the learning rate.
        std::jthread([&] { EXPECT_TRUE(weights.to(at::kCPU).sub(version - 1).abs().lt(1e-3).all().item<bool>()); });
        trained.publisher().publish(version);
        std::jthread([&] {
          for (const auto& [name, tensor] : policy->sampled().at(version).on_device().named())
            EXPECT_TRUE(tensor.to(at::kCPU).sub(version - 1).abs().lt(1e-3).all().item<bool>()) << name;
        });
      });
    }
    fake::set_schedule(1);
  }

  TinyFolder folder_;
};

TEST_P(NodesOnDevice, LogProbabilitiesAgree) {
  const auto run = [&](at::Device device) {
    return floats(run_node<Logprobs>(LogprobsParams{.model = "m"}, {{"m", model({}, device)}}, mixed_groups()),
                  "reference_logprobs");
  };
  EXPECT_THAT(run(device()), Pointwise(FloatNear(1e-4f), run(at::kCPU)));
}

TEST_P(NodesOnDevice, ValuesAgree) {
  const auto run = [&](at::Device device) {
    const auto critic = model({.value_head = true}, device);
    return floats(run_node<Values>(ValuesParams{.model = "m"}, {{"m", critic}}, mixed_groups()), "values");
  };
  EXPECT_THAT(run(device()), Pointwise(FloatNear(1e-4f), run(at::kCPU)));
}

TEST_P(NodesOnDevice, WeightsAreTrainedAlikeAndSavedFromThere) {
  const auto run = [&](at::Device device) {
    const auto trained = model({.optimizer = models::AdamWOptions{.learning_rate = 1e-2, .clip_grad_norm = 1}}, device);
    run_node<TrainSft>(TrainSftParams{.model = "m"}, {{"m", trained}}, mixed_groups(), {2, 2});
    trained->take_snapshot({.oldest = 1, .newest = 1}, engine::CheckpointCopy::kNone);
    trained->write_snapshot(folder_.path() / "saved", disk());
    const FrozenLanguageModel saved("m", folder_.path(), models::load_transformer(folder_.path() / "saved/actor", {}), {});
    EXPECT_EQ(all_weights(saved), all_weights(*trained));
    const auto restored = model({.seed = 2, .optimizer = models::AdamWOptions{}}, device);
    restored->restore(folder_.path() / "saved", {.oldest = 1, .newest = 1});
    EXPECT_EQ(all_weights(*restored), all_weights(*trained));
    return all_weights(*trained);
  };
  EXPECT_THAT(run(device()), Pointwise(FloatNear(2e-4f), run(at::kCPU)));
}

TEST_P(NodesOnDevice, TheLikeliestResponsesAgree) {
  const auto run = [&](at::Device device) {
    const GenerateParams params{.model = "actor", .samples_per_prompt = 1, .max_new_tokens = 12, .temperature = 0};
    std::vector<std::string> responses;
    for (const engine::Group& group : testing::Sampling(params, model({}, device)).run({"12+3=", "abc", "?"}))
      responses.push_back(group.read(columns::kResponse)[0]);
    return responses;
  };
  EXPECT_EQ(run(device()), run(at::kCPU));
}

// The trainer's thread and the reader's have streams of their own: what is stepped, published, averaged is there for others when
// the call returns.
TEST_P(NodesOnDevice, OtherStreamsReadWhatIsPublished) { expect_published(/*readable=*/2); }

// A single version is written by the steps themselves.
TEST_P(NodesOnDevice, OtherStreamsReadWhatStepsWrite) { expect_published(/*readable=*/1); }

// Of the weights of a model those that a version on a device has other values of.
std::vector<std::string> differing(const LanguageModel& model, const models::PackedWeights& version) {
  std::vector<std::string> names;
  const auto ours = version.on_device().named(), live = model.forward().transformer().weights().named();
  for (size_t i = 0; i < live.size(); ++i) {
    const at::Tensor value = live[i].second.detach().to(ours[i].second.scalar_type());
    if (!ours[i].second.equal(value)) names.push_back(live[i].first);
  }
  return names;
}

// Nothing is left to be copied but norms and biases.
TEST_P(NodesOnDevice, StepsWriteTheMatricesOfASingleVersion) {
  for (const models::Precision precision : {models::Precision::kFloat32, models::Precision::kBfloat16}) {
    const auto policy = model({.optimizer = models::AdamWOptions{.learning_rate = 1e-2}, .precision = precision}, device());
    const models::PackedWeights& version = policy->sampled().at(0);
    EXPECT_THAT(differing(*policy, version), ::testing::IsEmpty());
    testing::trained(*policy).optimizer().parameters().gradient_buffer().fill_(1);
    testing::trained(*policy).step(1);
    EXPECT_THAT(differing(*policy, version),
                ::testing::Each(::testing::AnyOf(::testing::HasSubstr("norm"), ::testing::HasSubstr("bias"))));
    testing::publish(*policy, 1);
    EXPECT_THAT(differing(*policy, version), ::testing::IsEmpty());
    // What somebody else changes is copied once the versions begin anew.
    testing::shift_weights(*policy, 0.5f);
    testing::trained(*policy).publisher().restart();
    testing::publish(*policy, 7);
    EXPECT_THAT(differing(*policy, version), ::testing::IsEmpty());
  }
}

// Adapters are merged, and are no matrices that steps could write.
TEST_P(NodesOnDevice, PublishingMergesAdaptersInBothPrecisions) {
  for (const models::Precision precision : {models::Precision::kFloat32, models::Precision::kBfloat16}) {
    const auto policy = model({.optimizer = models::AdamWOptions{.learning_rate = 0.1},
                               .precision = precision,
                               .trained = {.freeze = {}, .lora = LoraParams{.rank = 4}}},
                              device());
    const models::PackedWeights& version = policy->sampled().at(0);
    const at::Tensor before = version.on_device().layers[0].query.weight.to(at::kCPU, at::kFloat).clone();
    EXPECT_EQ(version.written(), 0u);
    for (int step = 1; step <= 2; ++step) {
      testing::trained(*policy).optimizer().parameters().gradient_buffer().fill_(1);
      testing::trained(*policy).step(1);
      testing::publish(*policy, step);
    }
    EXPECT_FALSE(version.on_device().layers[0].query.weight.to(at::kCPU, at::kFloat).equal(before));
  }
}

// What is frozen is copied once into each version.
TEST_P(NodesOnDevice, PublishingCopiesWhatIsTrained) {
  const auto policy = model(
      {.optimizer = models::AdamWOptions{}, .readable_versions = 2, .trained = {.freeze = {"model.embed_tokens.*"}}}, device());
  const auto frozen = ::testing::ElementsAre(::testing::HasSubstr("embed_tokens"));
  testing::publish(*policy, 1);
  testing::shift_weights(*policy, 0.5f);
  testing::publish(*policy, 2);
  EXPECT_THAT(differing(*policy, policy->sampled().at(2)), frozen);
  EXPECT_THAT(differing(*policy, policy->sampled().at(1)), ::testing::Contains(::testing::HasSubstr("q_proj")));
}

INSTANTIATE_TEST_SUITE_P(Devices, NodesOnDevice, ::testing::Values("cuda:0"), models::devices::PlainName());
INSTANTIATE_TEST_SUITE_P(FakeDevice, NodesOnDevice, ::testing::ValuesIn(models::devices::kFake), models::devices::PlainName());

}  // namespace
}  // namespace sluice::nodes::nodes_test
