#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "engine/ranks/parcel_pass_groups.h"
#include "nodes/forward/forward.h"
#include "nodes/forward/ragged.h"
#include "nodes/models/pass_lead.h"
#include "tests/engine/ranks/parcels_in_one_process.h"
#include "tests/files/forwarding_file_system.h"
#include "tests/nodes/tiny_model.h"

// A model whose passes two ranks compute, of which one leads, against one that a rank has alone.
namespace sluice::nodes {
namespace {

using engine::testing::ParcelsInOneProcess;
using testing::TinyFolder;
using testing::TinyOptions;
using testing::trained;

constexpr int kRanks = 2;  // as many as the model has heads of keys

// Four samples, the second of which lies in both segments, and one of which has no action.
struct Samples {
  Samples() {
    for (const auto& [length, actions] : std::vector<std::pair<size_t, size_t>>{{9, 4}, {14, 9}, {5, 0}, {8, 7}}) {
      layout.add_sample(length, actions);
      for (size_t i = 0; i < length; ++i) tokens.push_back(2 + static_cast<int64_t>(tokens.size() * 17 % 90));
    }
  }
  RaggedSamples ragged() const { return all_samples({tokens}, layout); }

  std::vector<int64_t> tokens;
  engine::Layout layout;
};

// The rank that leads, and a thread for each that assists, which ends when this goes.
class SharedModel {
 public:
  SharedModel(const TinyFolder& folder, const TinyOptions& options, int ring, int expert_ranks) {
    for (int rank = 0; rank < kRanks; ++rank) {
      TinyOptions own = options;
      own.world = {rank, kRanks, kRanks};
      models_.push_back(testing::tiny_model(folder.path(), own));
      groups_.push_back(
          std::make_unique<engine::ParcelPassGroups>(parcels_.rank(rank), std::vector<int>{0, 1}, ring, expert_ranks));
      models_.back()->share_passes(*groups_.back());
    }
    for (int rank = 1; rank < kRanks; ++rank)
      assisting_.emplace_back([&model = *models_[static_cast<size_t>(rank)]] { model.assist(unsynced_disk()); });
  }
  ~SharedModel() {
    models_.front()->dismiss();
    assisting_.clear();
    parcels_.close();
    EXPECT_TRUE(parcels_.failures().empty());
  }

  LanguageModel& leads() { return *models_.front(); }
  const std::vector<std::shared_ptr<LanguageModel>>& all() const { return models_; }

 private:
  ParcelsInOneProcess parcels_{kRanks, 3, 20};
  std::vector<std::unique_ptr<engine::ParcelPassGroups>> groups_;
  std::vector<std::shared_ptr<LanguageModel>> models_;
  std::vector<std::jthread> assisting_;
};

at::Tensor gradients_of(LanguageModel& model) {
  models::FlatParameters& parameters = trained(model).optimizer().parameters();
  return at::from_blob(parameters.gradients(), {parameters.size()}, at::kFloat).clone();
}

double relative_distance(const at::Tensor& a, const at::Tensor& b) {
  return (a - b).norm().item().toDouble() / b.norm().item().toDouble();
}

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

// A different slope for each number, so that none stands for another.
at::Tensor loss_of(const std::vector<at::Tensor>& outputs) {
  at::Tensor loss = at::zeros({});
  for (size_t i = 0; i < outputs.size(); ++i)
    loss = loss + (outputs[i] * at::arange(1, outputs[i].numel() + 1, at::kFloat)).sum() * (1.0 + static_cast<double>(i));
  return loss;
}

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
}  // namespace sluice::nodes
