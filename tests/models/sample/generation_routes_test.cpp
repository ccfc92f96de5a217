#include <ATen/Context.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "models/forward/action_logprobs.h"
#include "models/forward/transformer.h"
#include "models/portable/decoder.h"
#include "models/sample/generation.h"
#include "tests/models/dense_reference.h"

namespace sluice::models::generation_routes_test {
namespace {

// Of three layers, some of which have an MLP.
ModelConfig mixture_of(int64_t experts, const std::vector<int64_t>& dense_layers) {
  ModelConfig config = reference::small_config();
  config.layers = 3;
  config.experts = {.count = experts, .per_token = 2, .size = 20, .normalised = true, .dense_layers = dense_layers};
  return config;
}

const std::vector<int64_t> kPrompt{5, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2, 3, 8, 4};
const std::vector<int64_t> kReply{7, 7, 2};
constexpr size_t kPausesAt = 6;  // sample 2, for the reply

/// Some samples of a prompt, one of a longer one that begins alike; one pauses for a reply, and what else happens the limits say.
class Sampled {
 public:
  Sampled(const ModelConfig& config, const PackedWeights& weights, Precision precision, const GenerationLimits& limits)
      : engine_(config, {.sampling = {.temperature = 0.9}, .precision = precision, .keeps_routes = true}, limits) {
    engine_.set_judge([this](uint64_t id, std::span<const int64_t> tokens) {
      paused_ = paused_ || (id == 2 && tokens.size() == kPausesAt);
      return id == 2 && tokens.size() == kPausesAt ? Next::kPauses : Next::kGoesOn;
    });
    for (uint64_t id = 0; id < 5; ++id) engine_.submit(request(id));
    while (!engine_.idle()) {
      for (SampleResult& result : engine_.step(weights)) {
        const uint64_t id = result.id;
        results.emplace(id, std::move(result));
      }
      preempted += engine_.last_step().preemptions, reused += engine_.last_step().reused_tokens;
      kept_drafts += engine_.last_step().kept_drafts;
      if (paused_) engine_.resume(2, kReply);
      paused_ = false;
    }
  }

  static std::vector<int64_t> prompt(uint64_t id) {
    std::vector<int64_t> tokens = kPrompt;
    if (id == 4) tokens.insert(tokens.end(), {3, 1, 8});
    return tokens;
  }

  std::map<uint64_t, SampleResult> results;
  int64_t preempted = 0, reused = 0, kept_drafts = 0;

 private:
  static SampleRequest request(uint64_t id) {
    return {.id = id, .prompt = prompt(id), .max_new_tokens = 30, .stream = RandomStream(4, id), .greedy = id == 3};
  }

  GenerationEngine engine_;
  bool paused_ = false;
};

constexpr GenerationLimits kOneByOne{.max_running_samples = 1, .max_step_tokens = 64, .kv_block_size = 16, .kv_blocks = 5};

std::vector<int64_t> whole(const SampleResult& result) {
  std::vector<int64_t> tokens = Sampled::prompt(result.id);
  tokens.insert(tokens.end(), result.tokens.begin(), result.tokens.end());
  return tokens;
}

// What LibTorch's operators say of all tokens but the last; the last layer is open where no sampled token follows.
std::string expected_routes(const ModelConfig& config, const Weights& weights, Precision precision, const SampleResult& result) {
  const std::vector<int64_t> tokens = whole(result);
  portable::Decoder decoder(config, {.precision = precision, .blocks = 8});
  std::vector<int32_t> blocks{0, 1, 2, 3, 4, 5, 6, 7};
  at::Tensor routes;
  decoder.step(weights, std::vector<DecodeSequence>{{.tokens = tokens, .blocks = blocks}}, &routes);
  const RouteForm form = route_form(config);
  std::string all(reinterpret_cast<const char*>(routes.const_data_ptr<uint8_t>()),
                  (tokens.size() - 1) * static_cast<size_t>(form.token_bytes()));
  const auto prompt = static_cast<int64_t>(Sampled::prompt(result.id).size());
  for (int64_t token = 0; token + 1 < static_cast<int64_t>(tokens.size()); ++token) {
    const int64_t next = token + 1 - prompt;  // after the prompt
    bool sampled = next >= 0;
    for (const TokenRun& given : result.given) sampled = sampled && (next < given.begin || next >= given.end);
    if (!sampled) open_last_layer(form, reinterpret_cast<uint8_t*>(all.data()) + token * form.token_bytes());
  }
  return all;
}

class Routed : public ::testing::TestWithParam<std::tuple<int64_t, Precision, std::vector<int64_t>>> {
 protected:
  const ModelConfig config_ = mixture_of(std::get<0>(GetParam()), std::get<2>(GetParam()));
  const Precision precision_ = std::get<1>(GetParam());
  const bool seeded_ = (at::manual_seed(5), true);
  const Weights weights_ = reference::random_weights(config_, 0.2);
  const PackedWeights packed_{weights_, precision_};
};

TEST_P(Routed, AreThoseOfLibTorchsOperators) {
  const Sampled sampled(config_, packed_, precision_, kOneByOne);
  ASSERT_EQ(sampled.results.size(), 5u);
  for (const auto& [id, result] : sampled.results) {
    ASSERT_FALSE(id == 2 && result.given.empty());
    const std::string expected = expected_routes(config_, weights_, precision_, result);
    ASSERT_EQ(result.routes.size(), expected.size()) << id;
    size_t others = 0;
    for (size_t i = 0; i < expected.size(); ++i) others += result.routes[i] == expected[i] ? 0 : 1;
    // Sums have another order there, and of two experts that are as likely another one may then be chosen.
    EXPECT_LE(others, precision_ == Precision::kFloat32 ? 0 : expected.size() / 20) << id;
  }
}

TEST_P(Routed, DoNotDependOnWhatElseHappens) {
  const Sampled alone(config_, packed_, precision_, kOneByOne);
  int64_t preempted = 0, reused = 0, kept_drafts = 0;
  for (const GenerationLimits& limits :
       {GenerationLimits{.max_running_samples = 5, .max_step_tokens = 64, .kv_block_size = 16, .kv_blocks = 40},
        GenerationLimits{.max_running_samples = 5, .max_step_tokens = 7, .kv_block_size = 16, .kv_blocks = 40},
        GenerationLimits{.max_running_samples = 5,
        .max_step_tokens = 64,
        .kv_block_size = 16,
        .kv_blocks = 7,
        .admission = KvAdmission::kOnDemand},
        GenerationLimits{
            .max_running_samples = 3, .max_step_tokens = 64, .kv_block_size = 16, .kv_blocks = 40, .drafts = {.tokens = 4}}}) {
    const Sampled together(config_, packed_, precision_, limits);
    for (const auto& [id, result] : together.results) {
      EXPECT_EQ(result.tokens, alone.results.at(id).tokens) << id;
      EXPECT_EQ(result.routes, alone.results.at(id).routes) << id;
    }
    preempted += together.preempted, reused += together.reused, kept_drafts += together.kept_drafts;
  }
  EXPECT_GT(preempted, 0);
  EXPECT_GT(reused, 0);
  EXPECT_GT(kept_drafts, 0);
}

// Computed again with the weights that sampled, nothing is rerouted and no bit is another one; with others, tokens go where they
// went.
TEST_P(Routed, ReplayedByTheSameWeightsGiveTheSameBits) {
  const Sampled sampled(config_, packed_, precision_, kOneByOne);
  const SampleResult& result = sampled.results.at(0);
  const std::vector<int64_t> tokens = whole(result), offsets{0, static_cast<int64_t>(tokens.size())};
  std::string bytes = result.routes;
  const RouteForm form = route_form(config_);
  append_open_tokens(form, 1, bytes);
  const at::Tensor routes = at::from_blob(bytes.data(), {offsets.back(), form.token_bytes()}, at::kByte);
  const auto logprobs = [&](const Weights& weights, const at::Tensor& given) {
    const at::NoGradGuard no_gradient;
    const Transformer model(config_, weights, {.precision = precision_});
    const at::Tensor states = model.hidden_states(at::tensor(tokens, at::kLong), offsets, given);
    const auto actions = static_cast<int64_t>(result.tokens.size());
    const at::Tensor all = action_logprobs(states.narrow(0, offsets.back() - 1 - actions, actions), weights,
                                           at::tensor(result.tokens, at::kLong), {.temperature = 0.9, .precision = precision_});
    return std::vector<float>(all.const_data_ptr<float>(), all.const_data_ptr<float>() + all.numel());
  };
  EXPECT_EQ(logprobs(weights_, routes), result.logprobs);
  EXPECT_EQ(logprobs(weights_, {}), result.logprobs);
  const Weights others = reference::random_weights(config_, 0.2);
  EXPECT_NE(logprobs(others, routes), logprobs(others, {}));
}

INSTANTIATE_TEST_SUITE_P(
    Mixtures, Routed,
    ::testing::Combine(::testing::Values(8, 300), ::testing::Values(Precision::kFloat32, Precision::kBfloat16),
                       ::testing::Values(std::vector<int64_t>{}, std::vector<int64_t>{1}, std::vector<int64_t>{0, 2})));

}  // namespace
}  // namespace sluice::models::generation_routes_test
