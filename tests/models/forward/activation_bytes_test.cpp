#include "models/forward/activation_bytes.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include <thread>

#include "models/forward/action_logprobs.h"
#include "models/forward/transformer.h"
#include "models/memory/tensor_memory.h"
#include "tests/models/dense_reference.h"

// What is predicted against what LibTorch reports, for every switch of a config.
namespace sluice::models {
namespace {

struct Peak {
  int64_t measured, predicted;
};

struct Case {
  const char* name;
  bool training = false;
  Compute compute;
};

// Of the log-probabilities of `tokens` actions in one sample, and of their gradient.
Peak peak_of(Transformer& model, int64_t tokens, bool training) {
  const at::Tensor ids = at::randint(model.config().vocab_size, {tokens}, at::kLong);
  for (const auto& [name, weight] : reference::tensors_of(model.weights())) {
    weight->requires_grad_(training);
    weight->mutable_grad() = training ? at::zeros_like(*weight) : at::Tensor();
  }
  const Compute& compute = model.compute();
  TensorMemory memory;
  std::thread([&] {
    memory.watch_this_thread();
    const at::AutoGradMode gradient(training);
    const std::vector<int64_t> offsets{0, tokens};
    const at::Tensor logprobs =
        action_logprobs(model.hidden_states(ids, offsets), model.weights().head, ids,
                        {.temperature = 0.7, .softcap = model.config().logit_softcap, .precision = compute.precision});
    if (training) logprobs.sum().backward();
  }).join();
  const ModelPass pass{.training = training,
                       .tokens = tokens,
                       .longest_sample = tokens,
                       .precision = compute.precision,
                       .recompute = compute.checkpointing == ActivationCheckpointing::kLayer};
  return {memory.take_peak(), activation_bytes(model.config(), pass).tensors};
}

class ActivationBytesOfSwitches : public testing::TestWithParam<Case> {};

TEST_P(ActivationBytesOfSwitches, AreAnUpperBoundThatIsNearlyReached) {
  for (const auto& [name, small] : reference::configs_of_every_switch()) {
    for (const int64_t width : {1, 4}) {
      ModelConfig config = small;
      config.hidden_size *= 4, config.intermediate_size *= 4 * width, config.head_dim *= 4, config.rope.dims *= 4;
      config.max_positions = 2000, config.rope.scaling = RopeScaling::kNone;
      Transformer model(config, reference::random_weights(config, 0.05), GetParam().compute);
      for (const int64_t tokens : {100, 1500}) {
        const Peak peak = peak_of(model, tokens, GetParam().training);
        const std::string what = std::string(name) + ", " + std::to_string(width) + ", " + std::to_string(tokens);
        EXPECT_GE(peak.predicted, peak.measured) << what;
        EXPECT_LE(static_cast<double>(peak.predicted), 1.2 * static_cast<double>(peak.measured)) << what;
      }
    }
  }
}

constexpr auto kNarrow = Precision::kBfloat16;
constexpr auto kLayer = ActivationCheckpointing::kLayer;
INSTANTIATE_TEST_SUITE_P(Passes, ActivationBytesOfSwitches,
                         testing::Values(Case{"Forward"}, Case{"ForwardInBfloat16", false, {kNarrow}}, Case{"Training", true},
                                         Case{"TrainingInBfloat16", true, {kNarrow}},
                                         Case{"TrainingWithCheckpoints", true, {Precision::kFloat32, kLayer}},
                                         Case{"TrainingInBfloat16WithCheckpoints", true, {kNarrow, kLayer}}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace sluice::models
