#include "models/training/activation_bytes.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include <thread>

#include "models/training/action_logprobs.h"
#include "models/training/logits_chunk.h"
#include "models/training/tensor_memory.h"
#include "models/transformer.h"
#include "tests/models/dense_reference.h"

// What is predicted against what LibTorch reports, for every switch of a config.
namespace sluice::models {
namespace {

struct Peak {
  int64_t measured, predicted;
};

// Of the log-probabilities of `tokens` actions in one sample, and of their gradient.
Peak peak_of(Transformer& model, int64_t tokens, bool training) {
  const at::Tensor ids = at::randint(model.config().vocab_size, {tokens}, at::kLong);
  for (const auto& [name, weight] : reference::tensors_of(model.weights())) {
    weight->requires_grad_(training);
    weight->mutable_grad() = training ? at::zeros_like(*weight) : at::Tensor();
  }
  TensorMemory memory;
  std::thread([&] {
    memory.watch_this_thread();
    const at::AutoGradMode gradient(training);
    const std::vector<int64_t> offsets{0, tokens};
    const at::Tensor logprobs = action_logprobs(model.hidden_states(ids, offsets), model.weights().head, ids, 0.7,
                                                logits_chunk(model.config().vocab_size), model.config().logit_softcap);
    if (training) logprobs.sum().backward();
  }).join();
  const ModelPass pass{.training = training, .tokens = tokens, .longest_sample = tokens};
  return {memory.take_peak(), activation_bytes(model.config(), pass).tensors};
}

class ActivationBytesOfSwitches : public testing::TestWithParam<bool> {};

TEST_P(ActivationBytesOfSwitches, AreAnUpperBoundThatIsNearlyReached) {
  for (const auto& [name, small] : reference::configs_of_every_switch()) {
    for (const int64_t width : {1, 4}) {
      ModelConfig config = small;
      config.hidden_size *= 4, config.intermediate_size *= 4 * width, config.head_dim *= 4, config.rope.dims *= 4;
      config.max_positions = 2000, config.rope.scaling = RopeScaling::kNone;
      Transformer model(config, reference::random_weights(config, 0.05));
      for (const int64_t tokens : {100, 1500}) {
        const Peak peak = peak_of(model, tokens, GetParam());
        const std::string what = std::string(name) + ", " + std::to_string(width) + ", " + std::to_string(tokens);
        EXPECT_GE(peak.predicted, peak.measured) << what;
        EXPECT_LE(static_cast<double>(peak.predicted), 1.2 * static_cast<double>(peak.measured)) << what;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Passes, ActivationBytesOfSwitches, testing::Bool(),
                         [](const auto& info) { return info.param ? "Training" : "Forward"; });

}  // namespace
}  // namespace sluice::models
