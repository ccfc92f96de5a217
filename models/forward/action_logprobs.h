#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <utility>

#include "models/config/config.h"
#include "models/config/precision.h"
#include "models/kernels/packed_matrix.h"
#include "models/kernels/softmax_kernels.h"
#include "models/layers/pass_shape.h"
#include "models/layers/weights.h"

namespace sluice::models {

/// 64 MB of logits, which a backward need not compute again.
constexpr int64_t kKeptLogits = int64_t{16} << 20;

struct LogprobOptions {
  double temperature = 1.0;
  double softcap = 0.0;  // of the logits, ModelConfig::logit_softcap; 0: none
  Precision precision = Precision::kFloat32;
  int64_t kept_logits = kKeptLogits;  // for a backward, at most; action_logprobs_bytes() counts on this
};

/// The output embedding of a model: a tensor [V,H], a leaf where it needs a gradient; or packed, which has none.
struct OutputHead {
  OutputHead(at::Tensor tensor) : weight(std::move(tensor)) {}
  OutputHead(const Weights& weights) : weight(weights.head), packed(weights.packed_head) {}

  int64_t tokens() const { return packed ? packed->outputs() : weight.size(0); }
  int64_t inputs() const { return packed ? packed->inputs() : weight.size(1); }

  at::Tensor weight;
  std::shared_ptr<const PackedMatrix> packed;
};

struct ActionLogprobs {
  at::Tensor logprobs;  // [A]  natural log of the probability of each target; differentiable
  at::Tensor entropy;   // [A]  of the distribution each target was drawn from, in nats; differentiable
};

/// Log-probability of each action under softmax(cap(hidden head^T) / temperature), without the logits of all actions, or of the
/// whole vocabulary, at once. cap(z) = softcap tanh(z / softcap), or z where softcap is 0: the temperature is what samples, the
/// cap is part of the model.
///
/// hidden  [A,H]  final hidden states at the positions that predict the actions, float32
/// head    [V,H]
/// targets [A]    int64, sampled ids, 0 <= id < V
/// returns        float32
///
/// Differentiable in hidden and head. For the backward `hidden` is kept, rounded to the precision, and as many logits as
/// LogprobOptions::kept_logits allows, of the first actions; it computes the others again. Memory beside that is for the logits
/// of 512 actions and 1024 tokens and for the rows of `head` of 1024 tokens, packed. CPU.
/// With a head in bfloat16 or float16 and the precision kFloat32, each logit is one of the head's dtype (narrow_forward.h), and
/// nothing has a gradient. Throws InternalError on a shape mismatch, a temperature that is not positive or a negative softcap
/// (callers validate user data). Source: Wijmans et al. 2024, "Cut Your Losses", section 4.
at::Tensor action_logprobs(const at::Tensor& hidden, const OutputHead& head, const at::Tensor& targets,
                           const LogprobOptions& options = {});

/// The same, with the entropies.
ActionLogprobs action_logprobs_and_entropy(const at::Tensor& hidden, const OutputHead& head, const at::Tensor& targets,
                                           const LogprobOptions& options = {});

/// Of action_logprobs(): the most tokens and actions whose logits exist at a time, beside those that are kept.
constexpr int64_t kLogitTokens = kSoftmaxPart, kLogitActions = 512;

/// What action_logprobs() takes for so many actions beside `hidden`: tensors, and sums of the rows of a softmax. `training`: with
/// a backward.
PartBytes action_logprobs_bytes(const ModelConfig& config, Precision precision, int64_t actions, bool training);
int64_t action_logprobs_scratch_bytes(int64_t actions);

}  // namespace sluice::models
