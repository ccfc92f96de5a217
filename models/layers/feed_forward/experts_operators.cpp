#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/argsort.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/searchsorted.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/sort.h>
#include <ATen/ops/where.h>
#include <ATen/ops/xlogy.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "models/layers/feed_forward/experts.h"
#include "models/layers/feed_forward/joined_routings.h"

namespace sluice::models {
namespace {

// Of each token: its experts, in their order, and what they count, [T,K] each; the softmax of the router, [T,E].
struct Chosen {
  at::Tensor experts, weights, shares;
};

Chosen chosen_by(const ExpertsConfig& experts, const at::Tensor& logits, const at::Tensor& given) {
  const at::Tensor shares = at::softmax(logits, -1, at::kFloat);
  const at::Tensor order = std::get<1>(at::sort(logits.detach(), /*stable=*/true, -1, /*descending=*/true));
  at::Tensor chosen = std::get<0>(at::sort(order.narrow(1, 0, experts.per_token), -1));
  if (given.defined()) chosen = at::where(given.lt(0), chosen, given);
  const at::Tensor weights = shares.gather(1, chosen);
  return {chosen, experts.normalised ? weights.div(weights.sum(-1, true)) : weights, shares};
}

// One product adds up all samples: of its left side [S,T] a row has ones for the tokens of a sample.
std::vector<SampleRouting> routings_of(const ExpertsConfig& experts, const Chosen& chosen, const RouterOfLayer& router) {
  const auto samples = static_cast<int64_t>(router.offsets.size()) - 1;
  const at::Tensor shares = chosen.shares.detach();
  const at::Tensor through = at::zeros_like(shares).scatter(1, chosen.experts, 1.0);
  const at::Tensor least = shares.gather(1, chosen.experts).amin(1), others = shares.mul(through.neg().add(1)).amax(1);
  const at::Tensor rerouted = others.gt(least).to(at::kFloat).unsqueeze(1);
  const at::Tensor rows = at::cat({through, shares, at::xlogy(shares, shares).sum(1, true), rerouted}, 1);  // [T,2E+2]
  const at::Tensor belongs =
      at::arange(samples, router.sample_of.options()).unsqueeze(1).eq(router.sample_of.unsqueeze(0));  // [S,T]
  const at::Tensor sums = at::matmul(belongs.to(at::kFloat), rows).to(at::kCPU).contiguous();
  std::vector<SampleRouting> all;
  for (int64_t s = 0; s < samples; ++s) {
    const float* const of_sample = sums.const_data_ptr<float>() + s * sums.size(1);
    SampleRouting& sample = all.emplace_back();
    sample.tokens = router.offsets[static_cast<size_t>(s) + 1] - router.offsets[static_cast<size_t>(s)];
    sample.through.assign(of_sample, of_sample + experts.count);
    sample.shares.assign(of_sample + experts.count, of_sample + 2 * experts.count);
    sample.entropy = -of_sample[2 * experts.count];
    sample.rerouted = std::lround(of_sample[2 * experts.count + 1]);
  }
  return all;
}

// Tells `router` of the layer, and has the gradient of the logits get what is added to it. How many rows each expert has comes
// to the host with what is told.
std::vector<int64_t> counts_told(const ExpertsConfig& experts, const Chosen& chosen, const at::Tensor& logits,
                                 const RouterOfLayer& router) {
  const at::NoGradGuard no_gradient;
  const std::vector<SampleRouting> samples = routings_of(experts, chosen, router);
  std::vector<int64_t> counts(static_cast<size_t>(experts.count));
  for (const SampleRouting& sample : samples) std::ranges::transform(counts, sample.through, counts.begin(), std::plus<>());
  const auto slopes = router.training.add(experts, router.layer, of_all_segments(router.segment, samples));
  if (slopes.empty()) return counts;
  std::vector<float> side_by_side;
  for (const std::vector<float>& of_sample : slopes) side_by_side.insert(side_by_side.end(), of_sample.begin(), of_sample.end());
  const auto count = static_cast<int64_t>(slopes.size());
  const at::Tensor by_sample = at::from_blob(side_by_side.data(), {count, experts.count}, at::kFloat).clone();
  const at::Tensor of_shares = by_sample.to(logits.device()).index_select(0, router.sample_of), shares = chosen.shares.detach();
  const at::Tensor added = shares.mul(of_shares.sub(shares.mul(of_shares).sum(1, true)));  // [T,E]
  logits.register_hook([added](const at::Tensor& gradient) { return gradient.add(added.to(gradient.scalar_type())); });
  return counts;
}

// How many rows each expert has.
std::vector<int64_t> counts_of(const at::Tensor& sorted, int64_t experts) {
  const at::Tensor firsts = at::searchsorted(sorted, at::arange(experts + 1, sorted.options())).to(at::kCPU);
  const int64_t* first = firsts.const_data_ptr<int64_t>();
  std::vector<int64_t> counts;
  for (int64_t e = 0; e < experts; ++e) counts.push_back(first[e + 1] - first[e]);
  return counts;
}

at::Tensor mlp_of(const ModelConfig& config, std::span<const LinearWeights> weights, size_t expert, const at::Tensor& in,
                  const TensorMaths& maths) {
  const auto linear = [&](Mlp::Linear which) -> const LinearWeights& { return weights[Experts::linear_of(expert, which)]; };
  return maths.product(maths.gated(config.activation, in, linear(Mlp::kGate), linear(Mlp::kUp)), linear(Mlp::kDown));
}

}  // namespace

// Rows are copied once for each of a token's experts and put in the experts' order and back by permutations, so that no sum,
// not even of a gradient, has an order of chance.
at::Tensor Experts::in_operators(const ModelConfig& config, std::span<const LinearWeights> weights, const at::Tensor& in,
                                 const TensorMaths& maths, const RouterOfLayer* router, const RoutesInOperators& routes) const {
  const ExpertsConfig& experts = config.experts;
  const int64_t tokens = in.size(0), hidden = in.size(1);
  const at::Tensor logits = maths.product(in, weights[kRouter]);
  const Chosen chosen = chosen_by(experts, logits, routes.given);
  if (routes.chosen != nullptr) *routes.chosen = chosen.experts;
  const auto [sorted, order] = at::sort(chosen.experts.flatten(), /*stable=*/true, 0, /*descending=*/false);
  const bool tells = router != nullptr && logits.requires_grad();
  const std::vector<int64_t> counts = tells ? counts_told(experts, chosen, logits, *router) : counts_of(sorted, experts.count);
  const at::Tensor rows =
      in.unsqueeze(1).expand({tokens, experts.per_token, hidden}).reshape({-1, hidden}).index_select(0, order);
  const std::vector<at::Tensor> parts = rows.split_with_sizes(counts);
  std::vector<at::Tensor> results;
  for (size_t e = 0; e < parts.size(); ++e) {
    // Of no rows for the gradients alone, which then are zero.
    if (parts[e].size(0) > 0 || tokens == 0 || at::GradMode::is_enabled())
      results.push_back(mlp_of(config, weights, e, parts[e], maths));
  }
  const at::Tensor back = at::argsort(order, /*stable=*/true, 0, false);
  const at::Tensor apart = at::cat(results, 0).index_select(0, back).view({tokens, experts.per_token, hidden});
  at::Tensor out = apart.mul(chosen.weights.to(apart.scalar_type()).unsqueeze(-1)).sum(1);
  if (experts.shared_size == 0) return out;
  const at::Tensor shared = mlp_of(config, weights, static_cast<size_t>(experts.count), in, maths);
  return out.add(at::sigmoid(maths.product(in, weights.back())).mul(shared));
}

}  // namespace sluice::models
