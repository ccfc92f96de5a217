#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "models/config/precision.h"

namespace sluice::models::portable {

/// Who turns logits into log-probabilities, and back.
enum class LogitWork {
  kHost,       // the library's operators, on the CPU
  kApart,      // the same, on a device that works apart
  kOwnKernel,  // models/cuda/logit_rows.h
};

/// How many actions have their logits at a time, with so many tokens in the vocabulary.
int64_t rows_at_a_time(int64_t vocabulary, LogitWork work);

struct LogprobOptions {
  double temperature = 1;
  double softcap = 0;                         // of the logits, ModelConfig::logit_softcap; 0: none
  Precision precision = Precision::kFloat32;  // of the product with the head
  bool entropy = false;
};

struct ActionLogprobs {
  at::Tensor logprobs;  // [A]
  at::Tensor entropy;   // [A] in nats; undefined unless asked for
};

/// Log-probability of each action under softmax(cap(hidden head^T) / temperature), and the entropy of that distribution, in
/// chunks of actions, whose logits exist at a time: 32 MB on the CPU, and those of 2048 actions where a device works apart
/// from the host and needs large pieces of work. Memory is for twice as many; in the backward, which computes them again, for
/// three times with the gradient of entropies, and once more with a soft cap. In bfloat16 once for their rounded slopes.
/// Differentiable.
///
/// Where the device has our kernels (models/cuda/logit_rows.h), they read each logit once, and chunks are of 8192 actions: the
/// gradient of the head is read and written less often. Beside logits there are then their slopes if these are rounded, and
/// nothing else of their size. Those of the last chunk, and the head as it is multiplied, stay for the backward, so that this
/// comes before the next forward.
///
/// hidden [A,H] float32, head [V,H] float32 or in the precision, targets [A] int64
/// Source: Wijmans et al. 2024, "Cut Your Losses", section 4.
ActionLogprobs action_logprobs(const at::Tensor& hidden, const at::Tensor& head, const at::Tensor& targets,
                               const LogprobOptions& options);

}  // namespace sluice::models::portable
