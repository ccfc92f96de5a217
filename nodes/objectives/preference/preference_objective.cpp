#include "nodes/objectives/preference/preference_objective.h"

namespace sluice::nodes {
namespace {

double mean_of(const at::Tensor& x) { return x.detach().to(at::kDouble).mean().item().toDouble(); }

}  // namespace

std::vector<std::pair<std::string, double>> preference_metrics(const PreferenceInputs& inputs, const PreferenceTerms& terms) {
  return {{"preference/accuracy", mean_of(terms.chosen_rewards.gt(terms.rejected_rewards))},
          {"preference/reward_margin", mean_of(terms.chosen_rewards.sub(terms.rejected_rewards))},
          {"preference/chosen_reward_mean", mean_of(terms.chosen_rewards)},
          {"preference/rejected_reward_mean", mean_of(terms.rejected_rewards)},
          {"preference/chosen_logprob_mean", mean_of(inputs.chosen.policy)},
          {"preference/rejected_logprob_mean", mean_of(inputs.rejected.policy)}};
}

}  // namespace sluice::nodes
