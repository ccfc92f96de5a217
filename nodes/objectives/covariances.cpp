#include "nodes/objectives/covariances.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace sluice::nodes {

void StepMeans::look(const PolicyTerms& terms, StepSums& sums) {
  const auto on_host = [](const at::Tensor& x) { return x.detach().to(at::kDouble).contiguous(); };
  const at::Tensor advantages = on_host(terms.advantages), logprobs = on_host(terms.logprobs);
  const at::Tensor weights = terms.kept.weights().defined() ? on_host(terms.kept.weights()) : at::Tensor();
  for (int64_t i = 0; i < terms.kept.count(); ++i) {
    const double weight = weights.defined() ? weights.const_data_ptr<double>()[i] : 1;
    sums.moments[0].add(advantages.const_data_ptr<double>()[i], weight);
    sums.moments[1].add(logprobs.const_data_ptr<double>()[i], weight);
  }
  sums.counts.resize(std::max<size_t>(sums.counts.size(), 1));
  sums.counts[0] += terms.kept.count();
}

std::vector<double> StepMeans::find(const StepSums& of_all) {
  const double actions = of_all.counts.empty() ? 0 : static_cast<double>(of_all.counts[0]);
  return {of_all.moments[0].mean(), of_all.moments[1].mean(), actions};
}

StepMeans StepMeans::from(const std::vector<double>& found) {
  SLUICE_CHECK(found.size() >= kNumbers, "the step was not looked at");
  return {.advantage = found[0], .logprob = found[1], .actions = found[2]};
}

at::Tensor StepMeans::covariances(const PolicyTerms& terms) const {
  const at::Tensor advantages = terms.advantages.to(at::kDouble).sub(advantage);
  return terms.logprobs.detach().to(at::kDouble).sub(logprob).mul(advantages).to(at::kFloat);
}

double StepMeans::part(double share) const { return std::max(1.0, std::floor(share * actions)); }

}  // namespace sluice::nodes
