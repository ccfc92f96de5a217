#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/argsort.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/searchsorted.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/sort.h>

#include "models/layers/feed_forward/experts.h"

namespace sluice::models {
namespace {

// Of each token: its experts, in their order, and what they count. [T,K] each.
struct Chosen {
  at::Tensor experts, weights;
};

Chosen chosen_by(const ExpertsConfig& experts, const at::Tensor& logits) {
  const at::Tensor shares = at::softmax(logits, -1, at::kFloat);
  const at::Tensor order = std::get<1>(at::sort(logits.detach(), /*stable=*/true, -1, /*descending=*/true));
  const at::Tensor chosen = std::get<0>(at::sort(order.narrow(1, 0, experts.per_token), -1));
  const at::Tensor weights = shares.gather(1, chosen);
  return {chosen, experts.normalised ? weights.div(weights.sum(-1, true)) : weights};
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
  const at::Tensor up = maths.product(in, linear(Mlp::kUp));
  const at::Tensor inner = activated(config.activation, maths.product(in, linear(Mlp::kGate))).mul(up);
  return maths.product(maths.operand(inner), linear(Mlp::kDown));
}

}  // namespace

// Rows are copied once for each of a token's experts and put in the experts' order and back by permutations, so that no sum,
// not even of a gradient, has an order of chance.
at::Tensor Experts::in_operators(const ModelConfig& config, std::span<const LinearWeights> weights, const at::Tensor& in,
                                 const TensorMaths& maths) const {
  const ExpertsConfig& experts = config.experts;
  const int64_t tokens = in.size(0), hidden = in.size(1);
  const Chosen chosen = chosen_by(experts, maths.product(in, weights[kRouter]));
  const auto [sorted, order] = at::sort(chosen.experts.flatten(), /*stable=*/true, 0, /*descending=*/false);
  const std::vector<int64_t> counts = counts_of(sorted, experts.count);
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
