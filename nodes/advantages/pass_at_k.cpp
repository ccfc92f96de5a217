#include "nodes/advantages/pass_at_k.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace sluice::nodes {
namespace {

// C(chosen, k) / C(all, k), without factorials that overflow. 0 where chosen < k.
double ratio_of_choices(int64_t chosen, int64_t all, int64_t k) {
  double ratio = 1;
  for (int64_t i = 0; i < k; ++i) ratio *= static_cast<double>(std::max<int64_t>(0, chosen - i)) / static_cast<double>(all - i);
  return ratio;
}

}  // namespace

void PassAtK::describe(engine::Contract<PassAtKParams>& c) {
  c.type("pass_at_k", "what a sample adds to the chance that one of k is right; for scores of 0 and 1");
  c.param("k", &PassAtKParams::k).at_least(1).unit("samples").doc("samples that are tried together; at most those of a group");
  c.param("epsilon", &PassAtKParams::epsilon).at_least(0).doc("added to the standard deviation that divides");
  c.needs([](const PassAtKParams& params, engine::NodeNeeds& needs) { needs.least_samples = params.k; });
  c.reads(columns::kScore);
  c.reads_if_written(columns::kMask);
  describe_group_relative(c);
}

std::vector<double> PassAtK::advantages_of(const RewardedGroup& group) const {
  const std::string name = "group " + std::to_string(group.index);
  if (group.samples < static_cast<size_t>(params_.k)) {
    throw UserError(name + " has fewer samples than k = " + std::to_string(params_.k), "samples_per_prompt of at least k");
  }
  if (!std::ranges::all_of(group.rewards, [](double score) { return score == 0 || score == 1; })) {
    throw UserError(name + " has a score that is neither 0 nor 1: pass@k asks only whether a sample is right",
                    "a scorer of 0 and 1, or type \"grpo\"");
  }
  const auto count = static_cast<int64_t>(group.rewards.size());
  const int64_t wrong = std::ranges::count(group.rewards, 0.0);
  std::vector<double> advantages(group.rewards.size(), 0);
  if (wrong < params_.k || wrong == count) return advantages;  // every subset passes, or none does

  const double failing = ratio_of_choices(wrong, count, params_.k);  // 1 - R
  const double scale = 1 / (std::sqrt(failing * (1 - failing)) + params_.epsilon);
  const double failing_with_it = ratio_of_choices(wrong - 1, count - 1, params_.k - 1);
  for (size_t i = 0; i < advantages.size(); ++i)
    advantages[i] = (group.rewards[i] == 1 ? failing : failing - failing_with_it) * scale;
  return advantages;
}

}  // namespace sluice::nodes
