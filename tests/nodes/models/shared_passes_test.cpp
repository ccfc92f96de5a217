#include <ATen/core/grad_mode.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "nodes/forward/forward.h"
#include "tests/models/tensors.h"
#include "tests/nodes/models/shared_model.h"

// A model whose passes two ranks compute, of which one leads, against one that a rank has alone.
namespace sluice::nodes::shared_passes_test {
namespace {

using models::relative_distance;
using testing::gradients_of;
using testing::loss_of;
using testing::Samples;
using testing::SharedModel;
using testing::TinyFolder;
using testing::TinyOptions;
using testing::trained;

struct PassCase {
  std::string name;
  TinyOptions options;
  bool mixture = false;
  // What a node asks, as numbers with a gradient.
  std::function<std::vector<at::Tensor>(const ForwardModel&, const RaggedSamples&)> asked;
  int ring = 1;
  int expert_ranks = 1;
  std::vector<int64_t> dense_layers = {};
};

std::vector<at::Tensor> entropies(const ForwardModel& model, const RaggedSamples& samples) {
  const PolicyOutputs outputs = policy_logprobs_and_entropy(model, samples, 0.8);
  return {outputs.logprobs, outputs.entropy};
}

std::vector<at::Tensor> logprobs(const ForwardModel& model, const RaggedSamples& samples) {
  return {policy_logprobs(model, samples, 1.0)};
}

std::vector<at::Tensor> logprobs_beside_entropies(const ForwardModel& model, const RaggedSamples& samples) {
  return {policy_logprobs_and_entropy(model, samples, 0.8).logprobs};
}

std::vector<at::Tensor> values(const ForwardModel& model, const RaggedSamples& samples) {
  return {critic_values(model, samples)};
}

std::vector<at::Tensor> scores(const ForwardModel& model, const RaggedSamples& samples) {
  return {token_values(model, samples, last_tokens(samples.sample_offsets))};
}

std::vector<at::Tensor> both(const ForwardModel& model, const RaggedSamples& samples) {
  const PolicyAndValues outputs = policy_and_values(model, samples, 1.0, true);
  return {outputs.policy.logprobs, outputs.policy.entropy, outputs.values};
}

TinyOptions trains(TinyOptions options = {}) {
  options.optimizer = models::AdamWOptions{.learning_rate = 1e-2};
  return options;
}

std::vector<PassCase> pass_cases() {
  return {{"Logprobs", trains(), false, logprobs},
          {"LogprobsAndEntropies", trains({.recompute = true}), false, entropies},
          {"InBfloat16", trains({.precision = models::Precision::kBfloat16}), false, entropies},
          {"OfAdapters", trains({.trained = {{}, LoraParams{.rank = 3}}}), false, logprobs},
          {"EntropiesAreOnlyLookedAt", trains(), false, logprobs_beside_entropies},
          {"Scores", trains({.value_head = true}), false, scores},
          {"Values", trains({.value_head = true}), false, values},
          {"PolicyAndValues", trains({.both_heads = true}), false, both},
          {"OfAMixture", trains({.router_aux_loss = 0.1}), true, logprobs},
          {"InARing", trains(), false, entropies, 2},
          {"OfAMixtureInARing", trains({.router_aux_loss = 0.1}), true, logprobs, 2},
          {"OfSharedOutExperts", trains({.router_aux_loss = 0.1}), true, logprobs, 1, 2},
          {"OfSharedOutExpertsComputedAgain", trains({.router_aux_loss = 0.1, .recompute = true}), true, entropies, 1, 2},
          {"OfSharedOutExpertsInARing", trains(), true, logprobs, 2, 2},
          {"OfSharedOutExpertsBesideAnMlp", trains({.router_aux_loss = 0.1}), true, logprobs, 1, 2, {1}}};
}

class SharedPasses : public ::testing::TestWithParam<PassCase> {};

TEST_P(SharedPasses, GiveTheBitsOfOneRankAndItsGradients) {
  const TinyFolder folder;
  if (GetParam().mixture) testing::make_mixture(folder, GetParam().expert_ranks > 1 ? 6 : 5, GetParam().dense_layers);
  const Samples samples;
  const std::shared_ptr<LanguageModel> alone = testing::tiny_model(folder.path(), GetParam().options);
  SharedModel shared(folder, GetParam().options, GetParam().ring, GetParam().expert_ranks);
  const std::vector<at::Tensor> ours = GetParam().asked(shared.leads().forward(), samples.ragged()),
                                theirs = GetParam().asked(alone->forward(), samples.ragged());
  ASSERT_EQ(ours.size(), theirs.size());
  for (size_t i = 0; i < ours.size(); ++i) {
    EXPECT_TRUE(GetParam().ring > 1 || at::equal(ours[i].detach(), theirs[i].detach())) << i;
    EXPECT_LT(relative_distance(ours[i].detach(), theirs[i].detach()), 1e-6) << i;
  }

  for (const std::shared_ptr<LanguageModel>& model : {alone, shared.all().front()}) {
    trained(*model).enter_slot(0);
    loss_of(GetParam().asked(model->forward(), samples.ragged())).backward();
  }
  {
    const at::NoGradGuard behind_what_was_asked_before;
    GetParam().asked(shared.leads().forward(), samples.ragged());
  }
  at::Tensor sum = gradients_of(*shared.all()[0]);
  sum += gradients_of(*shared.all()[1]);
  EXPECT_LT(relative_distance(sum, gradients_of(*alone)),
            GetParam().options.precision == models::Precision::kFloat32 ? 2e-6 : 1e-2);
}

INSTANTIATE_TEST_SUITE_P(Models, SharedPasses, ::testing::ValuesIn(pass_cases()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace sluice::nodes::shared_passes_test
