#include "models/portable/activation_bytes.h"

#include <algorithm>

#include "models/portable/action_logprobs.h"

namespace sluice::models::portable {
namespace {

constexpr int64_t kFloat = 4, kIndex = 8;

// In numbers of a token, of one layer.
struct Widths {
  bool mixture;
  int64_t hidden, query, key, heads;
  int64_t inner;   // of all MLPs that it goes through
  int64_t widest;  // of one
  int64_t copies;  // of the hidden state, one for each of its experts
};

Widths widths_of(const ModelConfig& config, int64_t layer) {
  const ExpertsConfig& experts = config.experts;
  const bool mixture = config.is_mixture(layer);
  return {.mixture = mixture,
          .hidden = config.hidden_size,
          .query = config.heads * config.head_dim,
          .key = config.kv_heads * config.head_dim,
          .heads = config.heads,
          .inner = mixture ? experts.per_token * experts.size + experts.shared_size : config.intermediate_size,
          .widest = mixture ? std::max({experts.size, experts.shared_size, experts.count}) : config.intermediate_size,
          .copies = mixture ? experts.per_token * config.hidden_size : 0};
}

int64_t operand_size(const DevicePass& pass) { return pass.precision == Precision::kBfloat16 ? 2 : kFloat; }

// What goes in, that over its size, statistics, and what a product reads of it.
int64_t norm_kept(const Widths& of, int64_t operand) { return (2 * kFloat + operand) * of.hidden + 2 * kFloat; }

// Of attention and the network together: a norm of what goes in or of what comes out, or both.
int64_t norms_kept(const ModelConfig& config, const Widths& of, int64_t operand) {
  const int64_t behind = config.norm_place == NormPlace::kBoth ? norm_kept(of, 0) : 0;
  return 2 * (norm_kept(of, operand) + behind);
}

// Queries, keys and values as attention reads them, keys and values once for each query, what comes out of it and that put
// together; and the sums of the rows.
int64_t attention_kept(const ModelConfig& config, const Widths& of, int64_t operand) {
  const int64_t norms = config.qk_norm == QkNorm::kNone ? 0 : 2 * kFloat * (of.query + of.key);
  return norms + operand * (of.query + 2 * of.key + 2 * of.query + 2 * of.query) + kFloat * of.heads;
}

// Of a mixture: what the router gives, softened and chosen, and what its loss adds to the gradient; what experts read and what
// they give; what a shared one gives.
int64_t experts_kept(const ExpertsConfig& experts, const Widths& of, int64_t operand) {
  if (!of.mixture) return 0;
  const int64_t router = (3 * kFloat + kIndex) * experts.count + (3 * kFloat + 5 * kIndex) * experts.per_token;
  return router + (operand + kFloat) * of.copies + (experts.shared_size > 0 ? kFloat * (of.hidden + 1) : 0);
}

int64_t feed_forward_kept(const ModelConfig& config, const Widths& of, int64_t operand) {
  return (config.gated_mlp ? 3 : 2) * kFloat * of.inner + operand * of.inner + experts_kept(config.experts, of, operand);
}

// Inputs of adapters, which compute in float32: each of them has its own where the others are narrow.
int64_t adapters_kept(const DevicePass& pass, const Widths& of) {
  if (!pass.adapters) return 0;
  constexpr int64_t kRanks = 1024;  // of all of a layer's adapters, inside of them
  const int64_t widened = operand_size(pass) < kFloat ? 5 * of.hidden + of.query + of.inner : 0;
  return kFloat * (widened + 2 * kRanks);
}

int64_t layer_kept(const ModelConfig& config, const DevicePass& pass, const Widths& of) {
  const int64_t operand = operand_size(pass);
  return norms_kept(config, of, operand) + attention_kept(config, of, operand) + feed_forward_kept(config, of, operand) +
         adapters_kept(pass, of);
}

// Results and gradients that are there together for a moment, of the part of a layer that has most. Of neighbours that are
// rotated together the gradients are put together from two that have zeros between.
int64_t layer_moment(const ModelConfig& config, const Widths& of) {
  const int64_t apart = config.rotary_neighbours ? of.query + of.key : 0;
  return kFloat * (4 * (of.hidden + of.copies) + 4 * std::max(of.inner, of.query + 2 * of.key + apart));
}

// Queries, keys and values or their gradients once more, as rows or as heads, and what goes to one of the other ranks side by
// side.
int64_t exchanged_moment(const DevicePass& pass, const Widths& of) {
  return pass.ranks == 1 ? 0 : 2 * operand_size(pass) * (of.query + 2 * of.key);
}

// A matrix as it is multiplied, and the gradient of one before it is added.
int64_t of_matrix(const DevicePass& pass, const Widths& of) {
  const int64_t largest = of.hidden * std::max(of.widest, of.query);
  const int64_t narrow = operand_size(pass) < kFloat ? operand_size(pass) : 0;
  return largest * (narrow + (pass.training && !pass.adapters ? kFloat : 0));
}

// What there is at a time of logits: in the library's operators themselves or their slopes, their logarithms, and what the
// entropies take; in the backward the slopes as they are multiplied, and that of a soft cap. Where our kernels do it, of more
// rows themselves, and the slopes if they are rounded. The plan does not know who will: it is for either. What is narrow is
// made wide again where the device has no products of narrow numbers with wide results.
int64_t logit_bytes(const ModelConfig& config, const DevicePass& pass, int64_t in_product) {
  const auto bytes = [&](LogitWork work, int64_t of_logit) {
    return std::min(pass.tokens, rows_at_a_time(config.vocab_size, work)) * config.vocab_size * of_logit;
  };
  const int64_t backward = pass.training ? std::max(in_product, kFloat) + (config.logit_softcap == 0 ? 0 : kFloat) : 0;
  const int64_t rounded = pass.training && operand_size(pass) < kFloat ? operand_size(pass) : 0;
  return std::max(bytes(LogitWork::kApart, 3 * kFloat + backward), bytes(LogitWork::kOwnKernel, kFloat + rounded));
}

// The head, its gradient and logits.
int64_t head_bytes(const ModelConfig& config, const DevicePass& pass) {
  if (pass.value_head) return 4 * kFloat * pass.tokens;
  const int64_t operand = operand_size(pass), vocabulary = config.vocab_size;
  const int64_t in_product = operand < kFloat ? operand + kFloat : 0;
  const int64_t copy = in_product * vocabulary * config.hidden_size;
  const int64_t gradient = pass.training && !pass.adapters ? 2 * kFloat * vocabulary * config.hidden_size : 0;
  return copy + gradient + logit_bytes(config, pass, in_product);
}

// Tokens, targets, places, and what an objective reads and keeps of an action; angles of positions.
int64_t inputs_bytes(const ModelConfig& config, const DevicePass& pass) {
  int64_t angles = 0;
  for (int64_t which = 0; which < config.ropes(); ++which) angles += config.rotary_dims(which);
  return pass.tokens * (4 * kIndex + 24 * kFloat + kFloat * angles);
}

}  // namespace

int64_t activation_bytes(const ModelConfig& config, const DevicePass& pass) {
  const int64_t stream = pass.tokens * kFloat * config.hidden_size;
  int64_t all_kept = 0, most_kept = 0, most_moment = 0, most_at_once = 0;  // of all layers, of one
  for (int64_t layer = 0; layer < config.layers; ++layer) {
    const Widths of = widths_of(config, layer);
    const int64_t kept = pass.tokens * layer_kept(config, pass, of);
    const int64_t moment = pass.tokens * (layer_moment(config, of) + exchanged_moment(pass, of)) + of_matrix(pass, of);
    all_kept += kept;
    most_kept = std::max(most_kept, kept);
    most_moment = std::max(most_moment, moment);
    most_at_once = std::max(most_at_once, kept + moment);
  }
  const int64_t ends = inputs_bytes(config, pass) + 4 * stream;  // embeddings, the last norm, and what the head reads
  const int64_t head = head_bytes(config, pass);
  if (!pass.training) return ends + std::max(most_at_once, head);
  const int64_t below = pass.recompute ? config.layers * stream + most_kept : all_kept;
  return ends + below + std::max(most_moment, head);
}

}  // namespace sluice::models::portable
