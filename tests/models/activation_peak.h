#pragma once

#include <ATen/core/grad_mode.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/zeros_like.h>

#include <cstdint>
#include <thread>
#include <vector>

#include "models/forward/action_logprobs.h"
#include "models/forward/activation_bytes.h"
#include "models/forward/transformer.h"
#include "models/memory/tensor_memory.h"

namespace sluice::models {

struct ActivationPeak {
  int64_t measured, predicted;
};

/// Of the log-probabilities of `tokens` actions in one sample, and of their gradient: what LibTorch reports, and what
/// activation_bytes() says.
inline ActivationPeak activation_peak_of(Transformer& model, int64_t tokens, bool training) {
  const at::Tensor ids = at::randint(model.config().vocab_size, {tokens}, at::kLong);
  for (const auto& [name, weight] : model.weights().named()) {
    weight.requires_grad_(training);
    weight.mutable_grad() = training ? at::zeros_like(weight) : at::Tensor();
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

}  // namespace sluice::models
