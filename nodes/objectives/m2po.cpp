#include "nodes/objectives/m2po.h"

#include <bit>
#include <cstdint>
#include <limits>

#include "nodes/objectives/log_ratio.h"

namespace sluice::nodes {

namespace {

// [K] float32, whose bits are the keys of the search.
at::Tensor squares_of(const PolicyTerms& terms) { return terms.log_ratio().detach().to(at::kFloat).square(); }

// [K] the actions that a clip could reach: those that move away from the old policy.
at::Tensor moves_away(const PolicyTerms& terms) { return terms.log_ratio().detach().sign().mul(terms.advantages.sign()).gt(0); }

// From which square on actions are left out.
float bound_of(const std::vector<double>& step) {
  const std::optional<uint32_t> key = key_found(step, 0);
  return key ? std::bit_cast<float>(*key) : std::numeric_limits<float>::infinity();
}

}  // namespace

void M2po::describe(engine::Contract<M2poParams>& c) {
  using P = M2poParams;
  c.type("m2po", "policy gradient without a clip, but for the actions whose log ratios are the largest of the step");
  c.param("m2_threshold", &P::m2_threshold)
      .above(0)
      .doc("bounds the mean square of the log ratio over the actions that move away from the old policy");
  describe_policy_loss(c);
  c.metric("policy/m2_mean", engine::Metric::kMean, "that mean before any action is left out");
  c.metric("policy/m2_masked", engine::Metric::kMean, "part of the actions that are left out");
}

void M2po::look(int look, const PolicyTerms& terms, StepSums& sums) const {
  const at::Tensor squares = squares_of(terms).masked_select(moves_away(terms)).contiguous();
  std::vector<uint32_t> keys;
  for (int64_t i = 0; i < squares.numel(); ++i) keys.push_back(std::bit_cast<uint32_t>(squares.const_data_ptr<float>()[i]));
  count_keys(look, search_behind(terms.step, 0), keys, sums.counts);
}

std::vector<double> M2po::find(int look, const std::vector<double>& found, const StepSums& of_all) const {
  const auto above_threshold = [&](double count, double sum) { return sum > params_.m2_threshold * count; };
  return with_search(found, 0, narrowed(look, search_behind(found, 0), of_all.counts, above_threshold));
}

Surrogate M2po::surrogate(const PolicyTerms& terms) const {
  const at::Tensor squares = squares_of(terms), away = moves_away(terms);
  const at::Tensor masked = away.logical_and(squares.ge(bound_of(terms.step)));
  Surrogate result{.losses = exp_log_ratio(terms.log_ratio()).mul(terms.advantages).neg().masked_fill(masked, 0),
                   .metrics = {mean_metric("policy/m2_masked", masked)}};
  if (const at::Tensor moved = squares.masked_select(away); moved.numel() > 0)
    result.metrics.push_back(mean_metric("policy/m2_mean", moved));
  return result;
}

}  // namespace sluice::nodes
