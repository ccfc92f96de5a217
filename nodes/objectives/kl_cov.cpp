#include "nodes/objectives/kl_cov.h"

#include "base/error.h"
#include "nodes/objectives/log_ratio.h"

namespace sluice::nodes {

void KlCov::describe(engine::Contract<KlCovParams>& c) {
  using P = KlCovParams;
  c.type("kl_cov", "policy gradient without a clip, with a penalty on the actions that lower the entropy most");
  c.param("cov_share", &P::cov_share)
      .above(0)
      .at_most(1)
      .doc("share of the step's actions, those of the largest covariance, with the penalty");
  c.param("penalty_coefficient", &P::penalty_coefficient)
      .at_least(0)
      .recorded_as("policy/penalty_coefficient")
      .doc("weight of the absolute log ratio of those actions in the loss");
  describe_policy_loss(c);
  c.metric("policy/cov_mean", engine::Metric::kMean, "covariance of advantage and log-probability over the step");
  c.metric("policy/cov_chosen", engine::Metric::kMean, "part of the actions that have the penalty");
}

void KlCov::look(int look, const PolicyTerms& terms, StepSums& sums) const {
  if (look == 0) return StepMeans::look(terms, sums);
  const at::Tensor covariances = StepMeans::from(terms.step).covariances(terms);
  std::vector<uint32_t> keys;
  for (int64_t i = 0; i < covariances.numel(); ++i) keys.push_back(ordered_key(covariances.const_data_ptr<float>()[i]));
  count_keys(look - 1, search_behind(terms.step, StepMeans::kNumbers), keys, sums.counts);
}

std::vector<double> KlCov::find(int look, const std::vector<double>& found, const StepSums& of_all) const {
  if (look == 0) return StepMeans::find(of_all);
  const StepMeans means = StepMeans::from(found);
  const double without = means.actions - means.part(params_.cov_share);
  const auto is_chosen = [&](double count, double) { return count > without; };
  return with_search(found, StepMeans::kNumbers,
                     narrowed(look - 1, search_behind(found, StepMeans::kNumbers), of_all.counts, is_chosen));
}

Surrogate KlCov::surrogate(const PolicyTerms& terms) const {
  const at::Tensor covariances = StepMeans::from(terms.step).covariances(terms);
  const std::optional<uint32_t> key = key_found(terms.step, StepMeans::kNumbers);
  SLUICE_CHECK(key.has_value(), "a step has no action of the largest covariance");
  const at::Tensor chosen = covariances.ge(float_of_ordered(*key));
  const at::Tensor log_ratio = terms.log_ratio();
  const at::Tensor penalty = log_ratio.abs().mul(params_.penalty_coefficient.at(terms.iteration));
  return {.losses = exp_log_ratio(log_ratio).mul(terms.advantages).neg().add(penalty.masked_fill(chosen.logical_not(), 0)),
          .metrics = {mean_metric("policy/cov_mean", covariances), mean_metric("policy/cov_chosen", chosen)}};
}

}  // namespace sluice::nodes
