#include "models/forward/action_logprobs.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_log_softmax.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "base/error.h"
#include "models/kernels/parallel.h"
#include "models/kernels/row_kernels.h"
#include "models/kernels/softmax_kernels.h"
#include "models/layers/gradient.h"
#include "models/layers/matrix_products.h"
#include "models/layers/narrow_forward.h"
#include "models/layers/operand.h"
#include "models/layers/tensor_shape.h"
#include "models/portable/action_logprobs.h"

namespace sluice::models {
namespace {

constexpr int64_t kGrain = 8;  // rows of a block that a thread takes

TensorShape block_shape(int64_t actions, int64_t vocabulary, at::ScalarType type = at::kFloat) {
  return {std::min(kLogitActions, actions), std::min(kLogitTokens, vocabulary), type};
}

/// Logits of some actions and some tokens: what exists of them at a time, beside those that are kept.
struct LogitBlock {
  int64_t action, actions;  // from the first of all
  int64_t token, tokens;
  at::Tensor logits;  // [actions, tokens], float32
  bool is_capped;
};

// Where so many logits may be kept for a backward.
int64_t kept_actions(int64_t logits, int64_t actions, int64_t vocabulary) {
  return vocabulary > 0 ? std::min(actions, logits / vocabulary) : actions;
}

// What an entropy and its gradient are made of, too.
struct Distributions {
  at::Tensor hidden;   // [A,H], an operand
  OutputHead head;     // [V,H]
  at::Tensor targets;  // [A]
  LogprobOptions options;
  at::Tensor log_sum_exp, entropy;  // [A]
  int64_t kept_actions = 0;
  at::Tensor kept;  // logits of the first actions, capped, block by block; those of others are made again

  LogitScale scale() const { return {static_cast<float>(options.temperature), static_cast<float>(options.softcap)}; }
  at::Tensor rows(int64_t token, int64_t tokens) const { return head.weight.detach().narrow(0, token, tokens); }
  PackedMatrix matrix(int64_t token, int64_t tokens) const {
    return head.packed ? head.packed->part(token, tokens) : packed({rows(token, tokens)}, options.precision);
  }
};

// How the kept logits come by: a forward makes them as it makes all, a backward finds them.
enum class Kept { kMade, kFound };

// Calls begin(token, tokens) for each range of tokens, then visit(block) for each range of actions, which are kept or are not.
template <class Begin, class Visit>
void for_each_block(const Distributions& of, Kept kept, const Begin& begin, const Visit& visit) {
  const int64_t actions = of.hidden.size(0), vocabulary = of.head.tokens(), keeps = of.kept_actions;
  const at::Tensor memory = keeps == actions ? at::Tensor() : allocated(block_shape(actions - keeps, vocabulary)).flatten();
  for (int64_t token = 0; token < vocabulary; token += kLogitTokens) {
    const int64_t tokens = std::min(kLogitTokens, vocabulary - token);
    const bool finds_all = kept == Kept::kFound && keeps == actions;
    const PackedMatrix matrix = finds_all ? PackedMatrix() : of.matrix(token, tokens);
    begin(token, tokens);
    for (int64_t action = 0, count = 0; action < actions; action += count) {
      const bool is_kept = action < keeps, is_found = is_kept && kept == Kept::kFound;
      count = std::min(kLogitActions, (is_kept ? keeps : actions) - action);
      const at::Tensor all =
          is_kept ? of.kept.narrow(0, token * keeps + action * tokens, count * tokens) : memory.narrow(0, 0, count * tokens);
      const LogitBlock block{action, count, token, tokens, all.view({count, tokens}), /*is_capped=*/is_found};
      if (!is_found) multiply(of.hidden.narrow(0, action, count), matrix, {}, block.logits);
      visit(block);
    }
  }
}

// Logits [tokens] of a row, capped in their place.
float* capped_row(const LogitBlock& block, int64_t row, double softcap) {
  float* const logits = block.logits.mutable_data_ptr<float>() + row * block.tokens;
  if (softcap > 0 && !block.is_capped) soft_cap(logits, block.tokens, softcap);
  return logits;
}

// Place of the action's target in the block, or -1.
int64_t place_of(const LogitBlock& block, int64_t target) {
  const int64_t place = target - block.token;
  return place >= 0 && place < block.tokens ? place : -1;
}

// Fills log_sum_exp and entropy; returns the log-probabilities of the targets.
at::Tensor compute(Distributions& of) {
  const int64_t actions = of.hidden.size(0);
  std::vector<RowSums> sums(static_cast<size_t>(actions));
  const at::Tensor chosen = at::empty({actions});
  of.log_sum_exp = at::empty({actions}), of.entropy = at::empty({actions});
  float *logprobs = chosen.mutable_data_ptr<float>(), *log_sums = of.log_sum_exp.mutable_data_ptr<float>();
  float* entropies = of.entropy.mutable_data_ptr<float>();
  const auto* targets = of.targets.const_data_ptr<int64_t>();
  const LogitScale scale = of.scale();
  for_each_block(
      of, Kept::kMade, [](int64_t, int64_t) {},
      [&](const LogitBlock& block) {
        parallel_ranges(block.actions, kGrain, [&](int64_t begin, int64_t end) {
          for (int64_t row = begin; row < end; ++row) {
            const float* part = capped_row(block, row, of.options.softcap);
            const int64_t action = block.action + row, place = place_of(block, targets[action]);
            if (place >= 0) logprobs[action] = scaled_logit(part[place], scale);
            add_logits(part, block.tokens, scale, sums[static_cast<size_t>(action)]);
          }
        });
      });
  for (int64_t i = 0; i < actions; ++i) {
    const RowSums& row = sums[static_cast<size_t>(i)];
    log_sums[i] = row.log_sum_exp();
    entropies[i] = log_sums[i] - row.weighted / row.sum;
    logprobs[i] -= log_sums[i];
  }
  return chosen;
}

// Gradients of the logits of a block, an operand that may take the place of the logits.
void differentiate(const Distributions& of, const LogitBlock& block, const at::Tensor& grad_logprobs,
                   const at::Tensor& grad_entropy, const at::Tensor& out) {
  const float *log_sums = of.log_sum_exp.const_data_ptr<float>(), *entropies = of.entropy.const_data_ptr<float>();
  const float* of_logprobs = grad_logprobs.defined() ? grad_logprobs.const_data_ptr<float>() : nullptr;
  const float* of_entropy = grad_entropy.defined() ? grad_entropy.const_data_ptr<float>() : nullptr;
  const auto* targets = of.targets.const_data_ptr<int64_t>();
  const LogitScale scale = of.scale();
  with_number(of.options.precision, [&](auto number) {
    auto* to = numbers<decltype(number)>(out);
    parallel_ranges(block.actions, kGrain, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const int64_t action = block.action + row;
        const RowGradient gradient{.log_sum_exp = log_sums[action],
                                   .entropy = entropies[action],
                                   .grad_logprob = of_logprobs ? of_logprobs[action] : 0.0f,
                                   .grad_entropy = of_entropy ? of_entropy[action] : 0.0f,
                                   .target = place_of(block, targets[action])};
        const float* logits = capped_row(block, row, of.options.softcap);
        logit_gradient(logits, block.tokens, scale, gradient, to + row * block.tokens);
      }
    });
  });
}

// Adds the gradient of the head; returns that of `hidden`, if it is wanted.
at::Tensor backward(const Distributions& of, const at::Tensor& grad_logprobs, const at::Tensor& grad_entropy, bool wants_hidden) {
  const at::Tensor grad_head = gradient_of(of.head.weight);
  const at::Tensor grad_hidden = wants_hidden ? at::zeros_like(of.hidden, at::kFloat) : at::Tensor();
  const bool rounds = of.options.precision != Precision::kFloat32;
  const TensorShape rounded = block_shape(of.hidden.size(0), of.head.tokens(), operand_type(of.options.precision));
  const at::Tensor memory = rounds ? allocated(rounded).flatten() : at::Tensor();
  PackedMatrix transposed;
  const auto begin = [&](int64_t token, int64_t count) {
    transposed = {};  // before the next is made
    if (wants_hidden) transposed = packed_transposed(of.rows(token, count), of.options.precision);
  };
  for_each_block(of, Kept::kFound, begin, [&](const LogitBlock& block) {
    const at::Tensor grad = rounds ? memory.narrow(0, 0, block.logits.numel()).view(block.logits.sizes()) : block.logits;
    differentiate(of, block, grad_logprobs, grad_entropy, grad);
    if (wants_hidden) multiply(grad, transposed, {}, grad_hidden.narrow(0, block.action, block.actions), true);
    const at::Tensor hidden = of.hidden.narrow(0, block.action, block.actions);
    if (grad_head.defined()) add_weight_gradient(grad_head.narrow(0, block.token, block.tokens), grad, hidden);
  });
  return grad_hidden;
}

at::Tensor contiguous_or_none(const at::Tensor& gradient) {
  return gradient.defined() ? gradient.to(at::kFloat).contiguous() : gradient;
}

void check(const at::Tensor& hidden, const OutputHead& head, const at::Tensor& targets, const LogprobOptions& options) {
  SLUICE_CHECK(hidden.dim() == 2 && (head.packed || head.weight.dim() == 2) && hidden.size(1) == head.inputs(),
               "hidden [A,H] and head [V,H] must agree in H");
  SLUICE_CHECK(targets.dim() == 1 && targets.size(0) == hidden.size(0) && targets.scalar_type() == at::kLong,
               "targets must be int64 [A]");
  SLUICE_CHECK(hidden.is_cpu() && hidden.scalar_type() == at::kFloat, "hidden states are float32 on the CPU");
  SLUICE_CHECK(options.temperature > 0, "the temperature must be positive");
  SLUICE_CHECK(options.softcap >= 0, "a soft cap is positive, or 0 for none");
}

// Of logits that are rounded one by one to the dtype of the head.
ActionLogprobs narrow_logprobs(const at::Tensor& hidden, const at::Tensor& head, const at::Tensor& targets,
                               const LogprobOptions& options) {
  const at::NoGradGuard no_gradient;
  std::vector<at::Tensor> logprobs{at::empty({0})}, entropies{at::empty({0})};
  for (int64_t first = 0; first < hidden.size(0); first += kLogitActions) {
    const int64_t count = std::min(kLogitActions, hidden.size(0) - first);
    const at::Tensor logits = narrow_logits(hidden.narrow(0, first, count), head, options.softcap).div_(options.temperature);
    const at::Tensor all = at::_log_softmax(logits, 1, false);  // [c,V]
    logprobs.push_back(all.gather(1, targets.narrow(0, first, count).unsqueeze(1)).squeeze(1));
    entropies.push_back(all.exp().mul_(all).sum(1).neg_());
  }
  return {at::cat(logprobs), at::cat(entropies)};
}

ActionLogprobs on_device(const at::Tensor& hidden, const OutputHead& head, const at::Tensor& targets,
                         const LogprobOptions& options, bool entropy) {
  const auto outputs = portable::action_logprobs(
      hidden, head.weight, targets,
      {.temperature = options.temperature, .softcap = options.softcap, .precision = options.precision, .entropy = entropy});
  return {outputs.logprobs, outputs.entropy};
}

}  // namespace

ActionLogprobs action_logprobs_and_entropy(const at::Tensor& hidden, const OutputHead& head, const at::Tensor& targets,
                                           const LogprobOptions& options) {
  if (!hidden.is_cpu()) return on_device(hidden, head, targets, options, /*entropy=*/true);
  check(hidden, head, targets, options);
  if (!head.packed && computes_narrow(head.weight, options.precision))
    return narrow_logprobs(hidden, head.weight, targets, options);
  Distributions of{.hidden = to_operand(hidden.detach().contiguous(), options.precision),
                   .head = head,
                   .targets = targets.contiguous(),
                   .options = options};
  const bool differentiable = !head.packed && records_gradient({hidden, head.weight});
  if (differentiable) of.kept_actions = kept_actions(options.kept_logits, hidden.size(0), head.tokens());
  of.kept = at::empty({of.kept_actions * head.tokens()});
  const at::Tensor logprobs = compute(of);
  if (!differentiable) return {logprobs, of.entropy};
  const at::Tensor entropy = of.entropy.clone();  // an output must not be what its own step of the backward keeps
  const bool wants_hidden = wants_gradient(hidden);
  attach_backward({logprobs, entropy}, hidden, {head.weight}, [of, wants_hidden](std::vector<at::Tensor>&& gradients) {
    return backward(of, contiguous_or_none(gradients[0]), contiguous_or_none(gradients[1]), wants_hidden);
  });
  return {logprobs, entropy};
}

at::Tensor action_logprobs(const at::Tensor& hidden, const OutputHead& head, const at::Tensor& targets,
                           const LogprobOptions& options) {
  if (!hidden.is_cpu()) return on_device(hidden, head, targets, options, /*entropy=*/false).logprobs;
  return action_logprobs_and_entropy(hidden, head, targets, options).logprobs;
}

int64_t action_logprobs_scratch_bytes(int64_t actions) { return actions * static_cast<int64_t>(sizeof(RowSums)); }

PartBytes action_logprobs_bytes(const ModelConfig& config, Precision precision, int64_t actions, bool training) {
  const int64_t hidden = config.hidden_size, vocabulary = config.vocab_size;
  const bool rounds = precision != Precision::kFloat32;
  const TensorShape logits = block_shape(actions, vocabulary), of_actions{actions, 1};
  const auto packed = [&](int64_t outputs, int64_t inputs) { return PackedMatrix::bytes_for(precision, outputs, inputs); };
  const int64_t kept = training ? kept_actions(kKeptLogits, actions, vocabulary) : 0;
  const int64_t matrix = packed(logits.columns, hidden), block = block_shape(actions - kept, vocabulary).bytes();
  const int64_t rounded = if_there(rounds, block_shape(actions, vocabulary, operand_type(precision)).bytes());
  return {.kept = TensorShape{kept, vocabulary}.bytes() + if_there(rounds, operand_shape(precision, actions, hidden).bytes()),
          .forward = block + matrix + 3 * of_actions.bytes(),
          .backward = TensorShape{actions, hidden}.bytes() + block + if_there(kept < actions, matrix) + rounded +
                      packed(hidden, logits.columns) + 4 * of_actions.bytes()};
}

}  // namespace sluice::models
