#include <ATen/core/grad_mode.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <span>
#include <string>
#include <vector>

#include "models/forward/action_logprobs.h"
#include "models/forward/transformer.h"
#include "models/kernels/parallel.h"
#include "models/sample/generation.h"
#include "tests/models/dense_reference.h"

// What a policy said when it sampled and what training computes of the same samples are the same bits, whatever a sample ran
// beside: the order of all sums belongs to a sample alone.
namespace sluice::models::same_bits_test {
namespace {

constexpr double kTemperature = 0.9;

struct Sampled {
  std::vector<int64_t> prompt;
  SampleResult result;
};

// Prompts that share beginnings, more samples than places, steps that cut prompts, blocks for so few that samples are preempted.
std::vector<Sampled> sample(const ModelConfig& config, const PackedWeights& weights, uint64_t seed) {
  RandomStream random(seed, 0);
  const int64_t longest = std::min<int64_t>(config.steady_positions(), 90), places = 1 + static_cast<int64_t>(random.below(5));
  GenerationEngine engine(config, {.sampling = {.temperature = kTemperature, .top_p = 0.95}, .precision = weights.precision()},
                          {.max_running_samples = places,
                           .max_step_tokens = places + static_cast<int64_t>(random.below(40)),
                           .kv_block_size = 16,
                           .kv_blocks = 7 + static_cast<int64_t>(random.below(6)),
                           .admission = KvAdmission::kOnDemand});
  std::vector<Sampled> samples(8);
  std::vector<int64_t> beginning(static_cast<size_t>(longest * 2 / 3));
  for (int64_t& token : beginning) token = static_cast<int64_t>(random.below(static_cast<uint64_t>(config.vocab_size)));
  for (uint64_t id = 0; id < samples.size(); ++id) {
    samples[id].prompt.assign(beginning.begin(), beginning.begin() + 1 + static_cast<int64_t>(random.below(beginning.size())));
    engine.submit({.id = id,
                   .prompt = samples[id].prompt,
                   .max_new_tokens = longest - static_cast<int64_t>(samples[id].prompt.size()),
                   .stream = RandomStream(seed, 1, 0, static_cast<uint32_t>(id))});
  }
  while (!engine.idle()) {
    for (SampleResult& result : engine.step(weights)) samples[result.id].result = std::move(result);
  }
  return samples;
}

// Of all samples of a pass, as a training node computes them.
std::vector<float> computed(const Transformer& model, std::span<const Sampled> samples) {
  std::vector<int64_t> tokens, offsets{0}, places, targets;
  for (const Sampled& sample : samples) {
    tokens.insert(tokens.end(), sample.prompt.begin(), sample.prompt.end());
    for (const int64_t target : sample.result.tokens) {
      places.push_back(static_cast<int64_t>(tokens.size()) - 1);
      targets.push_back(target);
      tokens.push_back(target);
    }
    offsets.push_back(static_cast<int64_t>(tokens.size()));
  }
  const at::Tensor states =
      model.hidden_states(at::tensor(tokens, at::kLong), offsets).index_select(0, at::tensor(places, at::kLong));
  const at::Tensor logprobs = action_logprobs(
      states, model.weights(), at::tensor(targets, at::kLong),
      {.temperature = kTemperature, .softcap = model.config().logit_softcap, .precision = model.compute().precision});
  return {logprobs.const_data_ptr<float>(), logprobs.const_data_ptr<float>() + logprobs.numel()};
}

int64_t differences(std::span<const Sampled> samples, const std::vector<float>& expected) {
  int64_t different = 0;
  size_t at = 0;
  for (const Sampled& sample : samples) {
    for (const float logprob : sample.result.logprobs)
      different += std::bit_cast<uint32_t>(logprob) != std::bit_cast<uint32_t>(expected[at++]);
  }
  EXPECT_EQ(at, expected.size());
  return different;
}

void expect_same_bits(const std::string& name, const ModelConfig& config, Precision precision) {
  const Weights weights = reference::random_weights(config, 0.15);
  const PackedWeights packed(weights, precision);
  const Transformer frozen(config, weights, {precision}), published(config, packed.for_passes(), {precision});
  Transformer trained(config, weights.clone(), {precision, ActivationCheckpointing::kLayer});
  for (const auto& [key, tensor] : reference::tensors_of(trained.weights())) tensor->set_requires_grad(true);
  for (uint64_t seed = 0; seed < 4; ++seed) {
    const std::vector<Sampled> samples = sample(config, packed, seed);
    at::NoGradGuard no_gradient;
    EXPECT_EQ(differences(samples, computed(frozen, samples)), 0) << name << ", frozen, seed " << seed;
    EXPECT_EQ(differences(samples, computed(published, samples)), 0) << name << ", published, seed " << seed;
    at::AutoGradMode with_gradient(true);
    EXPECT_EQ(differences(samples, computed(trained, samples)), 0) << name << ", trained, seed " << seed;
  }
}

// One model, mix of samples, number of threads and division into passes.
void expect_same_bits_of_mix(const std::string& name, const ModelConfig& config, uint64_t seed) {
  RandomStream random(seed, 2);
  const Precision precision = random.below(2) == 0 ? Precision::kFloat32 : Precision::kBfloat16;
  const Weights weights = reference::random_weights(config, 0.15);
  set_loop_threads(1 + static_cast<int64_t>(random.below(3)));
  const std::vector<Sampled> samples = sample(config, PackedWeights(weights, precision), seed);
  set_loop_threads(1 + static_cast<int64_t>(random.below(3)));
  const Transformer model(config, weights, {precision});
  const at::NoGradGuard no_gradient;
  for (std::span<const Sampled> rest = samples; !rest.empty();) {
    const auto pass = rest.first(1 + random.below(rest.size()));
    rest = rest.subspan(pass.size());
    ASSERT_EQ(differences(pass, computed(model, pass)), 0) << name << ", mix " << seed << ", pass of " << pass.size();
  }
}

class SameBits : public ::testing::TestWithParam<Precision> {};

TEST_P(SameBits, OfSamplingAndTrainingForEverySwitchOfAModel) {
  for (const auto& [name, config] : reference::configs_of_every_switch()) expect_same_bits(name, config, GetParam());
}

TEST_P(SameBits, OfSamplingAndTrainingForWidthsAndVocabulariesOfManyParts) {
  ModelConfig config = reference::small_config();
  config.hidden_size = 200, config.intermediate_size = 330, config.head_dim = 40, config.vocab_size = 2500;
  expect_same_bits("wide", config, GetParam());
}

TEST(SameBitsSearch, OfSamplingAndTrainingForAThousandMixes) {
  const int64_t before = loop_threads();
  const auto configs = reference::configs_of_every_switch();
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    const auto& [name, config] = configs[seed % configs.size()];
    expect_same_bits_of_mix(name, config, seed);
    if (HasFatalFailure()) break;
  }
  set_loop_threads(before);
}

INSTANTIATE_TEST_SUITE_P(Precisions, SameBits, ::testing::Values(Precision::kFloat32, Precision::kBfloat16),
                         [](const auto& p) { return std::string(p.param == Precision::kFloat32 ? "Float32" : "Bfloat16"); });

}  // namespace
}  // namespace sluice::models::same_bits_test
