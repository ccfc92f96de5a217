#include "models/portable/sampler.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/where.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "models/cuda/own_kernels.h"
#include "models/cuda/step_kernels.h"
#include "models/devices/streams.h"
#include "models/portable/abilities.h"
#include "models/portable/likeliest_tokens.h"
#include "models/portable/penalties.h"

namespace sluice::models::portable {
namespace {

constexpr int64_t kNotFinite = -1;  // as the id that was drawn
constexpr int64_t kOfText = 64;     // bytes for each token of a text, with penalties

// What a row takes at most, but for its text. Rows are padded.
int64_t row_bytes(int64_t vocab_size, bool penalizes, bool truncates) {
  const int64_t of_logit = 20 + (penalizes ? 8 : 0) + (truncates ? 48 : 0);
  return of_logit * (vocab_size + SoftenedRows::kRun);
}

// The largest logit of each row, and where it is; the first of equal ones: [R,1] each.
struct RowTops {
  at::Tensor logit, id;
  at::Tensor finite;  // all of the row are
};

// A NaN is the largest and the smallest.
RowTops tops_of(const at::Tensor& logits) {
  const auto [logit, id] = logits.max(1, /*keepdim=*/true);
  return {logit, id, logit.isfinite().logical_and(logits.amin(1, /*keepdim=*/true).isfinite())};
}

// Each draw is from the row of its own number.
bool is_in_order(std::span<const TokenDraw> draws) {
  for (size_t i = 0; i < draws.size(); ++i)
    if (draws[i].row != static_cast<int64_t>(i)) return false;
  return true;
}

}  // namespace

Sampler::Sampler(const SamplingOptions& options, int64_t scratch_bytes) : options_(options), scratch_bytes_(scratch_bytes) {
  check_range(options);
}

void Sampler::sample(const at::Tensor& logits, const Texts& texts, std::span<const TokenDraw> draws,
                     std::span<SampledToken> tokens) const {
  SLUICE_CHECK(tokens.size() >= draws.size(), "no room for the sampled tokens");
  SLUICE_CHECK(!options_.penalizes() || texts.ids.defined(), "penalties are for the tokens of a text");
  if (draws.empty()) return;
  const at::NoGradGuard no_gradient;
  const OwnKernels* const own = own_kernels_of(logits.device());
  if (own != nullptr && !options_.penalizes() && !options_.truncates())
    return take(draws, drawn_by_own_kernels(*own, logits, draws), tokens);
  const Draws all = on_device(draws, logits.device());
  const bool all_greedy = std::ranges::all_of(draws, [](const TokenDraw& draw) { return draw.greedy; });
  const auto count = static_cast<int64_t>(draws.size()), chunk = rows_at_a_time(logits, texts);
  const bool in_order = is_in_order(draws);
  std::vector<at::Tensor> parts;
  for (int64_t first = 0; first < count; first += chunk) {
    const Draws some = all.narrow(first, std::min(chunk, count - first));
    const auto rows_of = [&](const at::Tensor& x) {
      if (!x.defined()) return x;
      return in_order ? x.narrow(0, first, some.rows.size(0)) : x.index_select(0, some.rows.squeeze(1));
    };
    parts.push_back(drawn(rows_of(logits), {rows_of(texts.ids), rows_of(texts.lengths)}, some, all_greedy));
  }
  take(draws, at::cat(parts), tokens);
}

// numbers [D,2] float64: ids, log-probabilities
void Sampler::take(std::span<const TokenDraw> draws, const at::Tensor& numbers, std::span<SampledToken> tokens) {
  const at::Tensor here = numbers.to(at::kCPU);
  const auto* number = here.const_data_ptr<double>();
  for (size_t i = 0; i < draws.size(); ++i, number += 2) {
    tokens[i] = {.id = static_cast<int64_t>(number[0]), .logprob = static_cast<float>(number[1])};
    if (tokens[i].id == kNotFinite) throw logits_are_not_finite(draws[i].id);
  }
}

at::Tensor Sampler::drawn_by_own_kernels(const OwnKernels& kernels, const at::Tensor& logits,
                                         std::span<const TokenDraw> draws) const {
  std::vector<double> uniform;
  std::vector<int32_t> rows;
  for (const TokenDraw& draw : draws) {
    uniform.push_back(draw.greedy || options_.temperature == 0 ? -1 : draw.uniform);
    rows.push_back(static_cast<int32_t>(draw.row));
  }
  const at::Tensor from = logits.contiguous(), of_uniform = numbers_on(logits.device(), uniform),
                   of_rows = numbers_on(logits.device(), rows);
  const at::Tensor out = at::empty({static_cast<int64_t>(draws.size()), 3}, of_uniform.options());
  DrawArguments in{.logits = from.const_data_ptr<float>(),
                   .rows = of_rows.const_data_ptr<int32_t>(),
                   .uniform = of_uniform.const_data_ptr<double>(),
                   .out = out.mutable_data_ptr<double>(),
                   .scale = static_cast<float>(scale()),
                   .draws = static_cast<int32_t>(draws.size()),
                   .vocabulary = static_cast<int32_t>(logits.size(1)),
                   .device = logits.device().index(),
                   .stream = current_stream_on(logits.device())};
  const at::Tensor scratch = at::empty({kernels.step->draw_bytes(in)}, from.options().dtype(at::kByte));
  in.scratch = scratch.mutable_data_ptr();
  const char* const failure = kernels.step->draw(in);
  SLUICE_CHECK(failure == nullptr, std::string("draws: ") + (failure ? failure : ""));
  const at::Tensor here = out.to(at::kCPU);
  return at::cat({here.narrow(1, 0, 1), here.narrow(1, 1, 1).mul(scale()).sub(here.narrow(1, 2, 1).log())}, 1);
}

Sampler::Draws Sampler::Draws::narrow(int64_t first, int64_t count) const {
  const auto part = [&](const at::Tensor& x) { return x.narrow(0, first, count); };
  return {part(rows), part(prompts), part(greedy), part(uniform)};
}

Sampler::Draws Sampler::on_device(std::span<const TokenDraw> draws, at::Device device) const {
  std::vector<int64_t> whole;  // rows, then prompts, then greedy
  std::vector<double> uniform;
  for (const TokenDraw& draw : draws) whole.push_back(draw.row), uniform.push_back(draw.uniform);
  for (const TokenDraw& draw : draws) whole.push_back(static_cast<int64_t>(draw.prompt.size()));
  for (const TokenDraw& draw : draws) whole.push_back(draw.greedy ? 1 : 0);
  const auto count = static_cast<int64_t>(draws.size());
  const at::Tensor numbers = numbers_on(device, whole).view({3, count, 1});
  return {numbers[0], numbers[1], numbers[2].ne(0), numbers_on(device, uniform).view({count, 1})};
}

int64_t Sampler::rows_at_a_time(const at::Tensor& logits, const Texts& texts) const {
  const int64_t of_text = options_.penalizes() ? kOfText * texts.ids.size(1) : 0;
  const int64_t of_row = row_bytes(logits.size(1), options_.penalizes(), options_.truncates());
  return std::max<int64_t>(1, scratch_bytes_ / (of_row + of_text));
}

int64_t Sampler::most_bytes(int64_t rows, int64_t vocab_size) {
  const int64_t of_row = row_bytes(vocab_size, /*penalizes=*/true, /*truncates=*/true);
  return std::max(of_row, std::min(kScratchBytes, rows * of_row));
}

// The id of each draw, or kNotFinite, and its log-probability: [D,2] float64. `logits` [D,V] and `texts` are those of the draws.
at::Tensor Sampler::drawn(const at::Tensor& logits, const Texts& texts, const Draws& draws, bool all_greedy) const {
  const RowTops tops = tops_of(logits);
  at::Tensor ids = tops.id, finite = tops.finite;
  SoftenedRows rows = softened(logits, tops.logit, scale());
  const at::Tensor total = rows.totals.sum(1, /*keepdim=*/true);
  if (!all_greedy && options_.penalizes()) {
    rows = {};  // gives its memory back
    const auto [others, others_finite] = drawn_with_penalties(logits, texts, draws);
    ids = at::where(draws.greedy, tops.id, others);
    finite = finite.logical_and(others_finite.logical_or(draws.greedy));
  } else if (!all_greedy && options_.temperature > 0) {
    ids = at::where(draws.greedy, tops.id, drawn_ids(logits, tops.logit, rows, draws));
  }
  const at::Tensor logit = logits.gather(1, ids).to(at::kDouble);
  const at::Tensor logprobs = logit.sub_(tops.logit.to(at::kDouble)).mul_(scale()).sub_(total.log());
  return at::cat({at::where(finite, ids, kNotFinite).to(at::kDouble), logprobs}, 1);
}

// Ids, and whether all logits that the penalties have changed are finite.
std::pair<at::Tensor, at::Tensor> Sampler::drawn_with_penalties(const at::Tensor& logits, const Texts& texts,
                                                                const Draws& draws) const {
  const at::Tensor changed = penalized(logits, texts, draws.prompts, options_);
  const RowTops tops = tops_of(changed);
  if (options_.temperature == 0) return {tops.id, tops.finite};
  return {drawn_ids(changed, tops.logit, softened(changed, tops.logit, scale()), draws), tops.finite};
}

// Of the vocabulary, whatever the logits are.
at::Tensor Sampler::drawn_ids(const at::Tensor& logits, const at::Tensor& top, const SoftenedRows& rows,
                              const Draws& draws) const {
  const at::Tensor ids = options_.truncates() ? drawn_from_likeliest(logits, top, rows, draws.uniform, options_)
                                              : drawn_from_all(rows, draws.uniform);
  return ids.clamp_max(logits.size(1) - 1);
}

}  // namespace sluice::models::portable
