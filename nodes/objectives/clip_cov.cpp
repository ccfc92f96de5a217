#include "nodes/objectives/clip_cov.h"

#include "nodes/objectives/log_ratio.h"
#include "nodes/objectives/ppo_clip.h"

namespace sluice::nodes {

void ClipCov::describe(engine::Contract<ClipCovParams>& c) {
  using P = ClipCovParams;
  c.type("clip_cov", "clipped surrogate without some of the actions that lower the entropy most, drawn at random");
  c.param("cov_share", &P::cov_share).above(0).at_most(1).doc("how many actions are drawn, as a share of all of the step");
  c.param("cov_low", &P::cov_low).doc("least covariance of an action that may be drawn");
  c.param("cov_high", &P::cov_high).doc("largest such covariance");
  c.param("clip_low", &P::clip_low).between(0, 1).recorded_as("policy/clip_low").doc("the ratio pays down to 1 - clip_low");
  c.param("clip_high", &P::clip_high).at_least(0).recorded_as("policy/clip_high").doc("the ratio pays up to 1 + clip_high");
  describe_policy_loss(c);
  describe_clip_fractions(c);
  c.metric("policy/cov_mean", engine::Metric::kMean, "covariance of advantage and log-probability over the step");
  c.metric("policy/cov_chosen", engine::Metric::kMean, "part of the actions that are drawn");
  c.check([](const P& params, engine::Findings& findings) {
    if (params.cov_low > params.cov_high)
      findings.error("cov_low", "cov_low is above cov_high: no action can be drawn", "swap the two");
  });
}

void ClipCov::look(int look, const PolicyTerms& terms, StepSums& sums) const {
  if (look == 0) return StepMeans::look(terms, sums);
  const at::Tensor covariances = StepMeans::from(terms.step).covariances(terms);
  const at::Tensor draws = terms.draws.masked_select(candidates(terms, covariances)).contiguous();
  const auto* begin = draws.const_data_ptr<int64_t>();
  const std::vector<uint32_t> keys(begin, begin + draws.numel());
  count_keys(look - 1, search_behind(terms.step, StepMeans::kNumbers), keys, sums.counts);
}

std::vector<double> ClipCov::find(int look, const std::vector<double>& found, const StepSums& of_all) const {
  if (look == 0) return StepMeans::find(of_all);
  const double wanted = StepMeans::from(found).part(params_.cov_share);
  const auto are_enough = [&](double count, double) { return count >= wanted; };
  return with_search(found, StepMeans::kNumbers,
                     narrowed(look - 1, search_behind(found, StepMeans::kNumbers), of_all.counts, are_enough));
}

at::Tensor ClipCov::candidates(const PolicyTerms& terms, const at::Tensor& covariances) const {
  const at::Tensor inside = covariances.ge(params_.cov_low).logical_and(covariances.le(params_.cov_high));
  const at::Tensor free = exp_log_ratio(terms.log_ratio().detach()).mul(terms.advantages).neg();
  return inside.logical_and(clipped(terms).losses.detach().le(free));
}

Surrogate ClipCov::clipped(const PolicyTerms& terms) const {
  return clipped_surrogate(exp_log_ratio(terms.log_ratio()), terms.advantages, params_.clip_low.at(terms.iteration),
                           params_.clip_high.at(terms.iteration));
}

Surrogate ClipCov::surrogate(const PolicyTerms& terms) const {
  const at::Tensor covariances = StepMeans::from(terms.step).covariances(terms);
  at::Tensor drawn = candidates(terms, covariances);
  if (const std::optional<uint32_t> last = key_found(terms.step, StepMeans::kNumbers))  // nothing: there are too few
    drawn = drawn.logical_and(terms.draws.le(static_cast<int64_t>(*last)));
  Surrogate result = clipped(terms);
  result.losses = result.losses.masked_fill(drawn, 0);
  result.metrics.push_back(mean_metric("policy/cov_mean", covariances));
  result.metrics.push_back(mean_metric("policy/cov_chosen", drawn));
  return result;
}

}  // namespace sluice::nodes
