#include "models/sample/sampler.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <utility>

#include "base/error.h"
#include "models/kernels/parallel.h"
#include "models/kernels/softmax_kernels.h"
#include "models/sample/likeliest_tokens.h"
#include "models/sample/sampling_kernels.h"

namespace sluice::models {
namespace {

constexpr int64_t kNotFinite = -1;          // as the id that was drawn
constexpr int64_t kThreadLogits = 1 << 14;  // that a thread is worth waking for

int64_t runs_of(std::span<const float> logits) { return (static_cast<int64_t>(logits.size()) + kSamplingRun - 1) / kSamplingRun; }

int64_t size_of(std::span<const float> logits) { return static_cast<int64_t>(logits.size()); }

RowTop top_of(std::span<const float> logits) { return models::top_of(logits.data(), size_of(logits)); }

}  // namespace

Sampler::Sampler(const SamplingOptions& options, int64_t vocabulary)
    : options_(options), vocabulary_(static_cast<size_t>(vocabulary)) {
  check_range(options);
}

void Sampler::set_options(const SamplingOptions& options) {
  check_range(options);
  options_ = options;
}

void Sampler::sample(std::span<const float> logits, std::span<const TokenDraw> draws, std::span<SampledToken> tokens) {
  SLUICE_CHECK(tokens.size() >= draws.size(), "no room for the sampled tokens");
  if (draws.empty()) return;
  const auto count = static_cast<int64_t>(draws.size()), size = static_cast<int64_t>(vocabulary_);
  const int64_t grain = kThreadLogits / size + 1;
  const int64_t runs = std::clamp<int64_t>(count / grain, 1, loop_threads());
  if (static_cast<int64_t>(scratch_.size()) < runs) scratch_.resize(static_cast<size_t>(runs));
  parallel_ranges(runs, 1, [&](int64_t begin, int64_t end) {
    for (int64_t run = begin; run < end; ++run) {
      for (auto i = static_cast<size_t>(count * run / runs); i < static_cast<size_t>(count * (run + 1) / runs); ++i) {
        const auto row = logits.subspan(static_cast<size_t>(draws[i].row) * vocabulary_, vocabulary_);
        tokens[i] = draw(draws[i], row, scratch_[static_cast<size_t>(run)]);
      }
    }
  });
  for (size_t i = 0; i < draws.size(); ++i)
    if (tokens[i].id == kNotFinite) throw logits_are_not_finite(draws[i].id);
}

SampledToken Sampler::draw(const TokenDraw& draw, std::span<const float> logits, Scratch& scratch) const {
  const RowTop top = top_of(logits);
  if (!top.finite) return {.id = kNotFinite};
  if (options_.penalizes() && !draw.greedy) {
    const std::span<const float> changed = penalized(draw, logits, scratch);
    const RowTop of_penalized = top_of(changed);
    if (!of_penalized.finite) return {.id = kNotFinite};
    return with_logprob(draw_id(changed, of_penalized.logit, draw, scratch), logits);
  }
  return with_logprob(draw_id(logits, top.logit, draw, scratch), logits);
}

// In the order of sums in which training computes it: the same bits.
SampledToken Sampler::with_logprob(int64_t id, std::span<const float> logits) const {
  const LogitScale scale{.temperature = static_cast<float>(temperature())};
  RowSums sums;
  for (int64_t first = 0; first < size_of(logits); first += kSoftmaxPart)
    add_logits(logits.data() + first, std::min(kSoftmaxPart, size_of(logits) - first), scale, sums);
  return {.id = id, .logprob = scaled_logit(logits[static_cast<size_t>(id)], scale) - sums.log_sum_exp()};
}

// What the penalties make of the logits of a row.
std::span<const float> Sampler::penalized(const TokenDraw& draw, std::span<const float> logits, Scratch& scratch) const {
  float* const changed = scratch.penalized.at_least(size_of(logits));
  std::copy(logits.begin(), logits.end(), changed);
  scratch.counts.resize(logits.size());
  // Calls change(logit, count) for each id that occurs in the texts, once.
  const auto for_each_id = [&](std::initializer_list<std::span<const int64_t>> texts, const auto& change) {
    for (const auto& text : texts)
      for (const int64_t id : text) ++scratch.counts[static_cast<size_t>(id)];
    for (const auto& text : texts)
      for (const int64_t id : text)
        if (const int32_t count = std::exchange(scratch.counts[static_cast<size_t>(id)], 0); count > 0)
          changed[id] = change(changed[id], static_cast<float>(count));
  };
  const auto repetition = static_cast<float>(options_.repetition_penalty);
  const auto presence = static_cast<float>(options_.presence_penalty);
  const auto frequency = static_cast<float>(options_.frequency_penalty);
  if (repetition != 1)
    for_each_id({draw.prompt, draw.response},
                [=](float logit, float) { return logit > 0 ? logit / repetition : logit * repetition; });
  if (presence != 0 || frequency != 0)
    for_each_id({draw.response}, [=](float logit, float count) { return logit - frequency * count - presence; });
  return {changed, logits.size()};
}

// Weights are kept where likeliest tokens are looked for; a draw from all makes those that it needs once more.
Sampler::Softened Sampler::soften(std::span<const float> logits, float top, Scratch& scratch) const {
  const int64_t runs = runs_of(logits);
  double* const totals = scratch.totals.at_least(runs);
  float* const weights = options_.truncates() ? scratch.weights.at_least(size_of(logits)) : nullptr;
  soften_row(logits.data(), size_of(logits), top, scale(), weights, totals);
  Softened row{.logits = logits, .top = top};
  for (int64_t run = 0; run < runs; ++run) row.total += totals[run];
  return row;
}

int64_t Sampler::draw_id(std::span<const float> logits, float top, const TokenDraw& draw, Scratch& scratch) const {
  if (draw.greedy || options_.temperature == 0) {
    const float below = std::nextafter(top, -std::numeric_limits<float>::infinity());
    int32_t* const ids = scratch.ids.at_least(size_of(logits));
    ids_between(logits.data(), size_of(logits), below, top, ids);
    return ids[0];
  }
  const Softened row = soften(logits, top, scratch);
  return options_.truncates() ? draw_from_likeliest(row, scratch, draw.uniform) : draw_from_all(row, scratch, draw.uniform);
}

int64_t Sampler::draw_from_all(const Softened& row, Scratch& scratch, double uniform) const {
  const double* const totals = scratch.totals.data();
  double left = uniform * row.total;
  int64_t run = 0;
  while (run + 1 < runs_of(row.logits) && left >= totals[run]) left -= totals[run++];
  const int64_t first = run * kSamplingRun, count = std::min(kSamplingRun, size_of(row.logits) - first);
  float weights[kSamplingRun];
  double total = 0;
  soften_row(row.logits.data() + first, count, row.top, scale(), weights, &total);
  int64_t last_possible = 0;  // rounding may leave a little over after the last weight
  for (int64_t i = 0; i < count; ++i) {
    if (weights[i] == 0) continue;
    last_possible = i;
    if (left < weights[i]) break;
    left -= weights[i];
  }
  return first + last_possible;
}

int64_t Sampler::draw_from_likeliest(const Softened& row, Scratch& scratch, double uniform) const {
  constexpr double kAnyMass = std::numeric_limits<double>::infinity();
  const int64_t size = size_of(row.logits);
  const LikeliestTokens tokens(row.logits, {scratch.weights.data(), row.logits.size()}, row.top, scale(),
                               {scratch.ids.at_least(size), row.logits.size()});
  LikeliestTokens::Prefix kept{.count = size, .mass = row.total};
  if (options_.top_k > 0 && options_.top_k < size) kept = tokens.reach(kAnyMass, options_.top_k);
  if (options_.top_p < 1) kept = tokens.reach(options_.top_p * kept.mass, kept.count);
  if (options_.min_p > 0) {
    const LikeliestTokens::Prefix likely =
        tokens.not_below(row.top + static_cast<float>(temperature() * std::log(options_.min_p)));
    if (likely.count < kept.count) kept = likely;
  }
  return tokens.reach(uniform * kept.mass, kept.count).last;
}

}  // namespace sluice::models
