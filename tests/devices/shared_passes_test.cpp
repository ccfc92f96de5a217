#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "nodes/forward/forward.h"
#include "tests/models/devices.h"
#include "tests/models/tensors.h"
#include "tests/nodes/models/shared_model.h"

// A model on devices whose passes two ranks compute, each on one of its own, against one on the CPU that a rank has alone.
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
  bool values = false;
};

TinyOptions trains(TinyOptions options = {}) {
  options.optimizer = models::AdamWOptions{.learning_rate = 1e-2};
  return options;
}

std::vector<PassCase> pass_cases() {
  return {{"Entropies", trains()},
          {"ComputedAgain", trains({.recompute = true})},
          {"InBfloat16", trains({.precision = models::Precision::kBfloat16})},
          {"OfAdapters", trains({.trained = {{}, LoraParams{.rank = 3}}})},
          {"Values", trains({.value_head = true}), false, true},
          {"OfAMixture", trains({.router_aux_loss = 0.1}), true},
          {"OfAMixtureComputedAgain", trains({.router_aux_loss = 0.1, .recompute = true}), true}};
}

// Of two GPUs nobody has tests; on one, both ranks of a process would wait for its only thread of backwards.
class SharedPassesOnDevice : public ::testing::TestWithParam<PassCase> {
 protected:
  std::vector<at::Tensor> asked(const ForwardModel& model) const {
    if (GetParam().values) return {critic_values(model, samples_.ragged())};
    const PolicyOutputs outputs = policy_logprobs_and_entropy(model, samples_.ragged(), 0.8);
    return {outputs.logprobs, outputs.entropy};
  }

  const Samples samples_;
};

TEST_P(SharedPassesOnDevice, GiveTheNumbersOfOneRankOnTheCpu) {
  const TinyFolder folder;
  if (GetParam().mixture) testing::make_mixture(folder);
  TinyOptions there = GetParam().options;
  there.device = models::devices::find("fake:0").value();
  const std::shared_ptr<LanguageModel> alone = testing::tiny_model(folder.path(), GetParam().options);
  SharedModel shared(folder, there);
  const double rounding = GetParam().options.precision == models::Precision::kFloat32 ? 1e-5 : 5e-2;

  const std::vector<at::Tensor> ours = asked(shared.leads().forward()), theirs = asked(alone->forward());
  ASSERT_EQ(ours.size(), theirs.size());
  for (size_t i = 0; i < ours.size(); ++i) EXPECT_LT(relative_distance(ours[i].detach(), theirs[i].detach()), rounding) << i;

  for (const std::shared_ptr<LanguageModel>& model : {alone, shared.all().front()}) {
    trained(*model).enter_slot(0);
    loss_of(asked(model->forward())).backward();
  }
  asked(shared.leads().forward());  // comes after the backward of the rank that assists
  at::Tensor sum = gradients_of(*shared.all()[0]);
  sum += gradients_of(*shared.all()[1]);
  EXPECT_LT(relative_distance(sum, gradients_of(*alone)), rounding);
}

INSTANTIATE_TEST_SUITE_P(FakeDevice, SharedPassesOnDevice, ::testing::ValuesIn(pass_cases()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace sluice::nodes::shared_passes_test
