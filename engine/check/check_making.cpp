#include <algorithm>

#include "base/text/strings.h"
#include "engine/check/worst_case.h"

// Tokens of ranks that only sample: have they room for what they make, and where some may be lost, for what those were to make?
namespace sluice::engine::checking {
namespace {

// The share of a path that its groups of ranks which may be lost have no room in.
void check_share_of_elastic(Draft& draft, const Worst& worst, int64_t share) {
  const int64_t needed = saturating_product(2, worst.group_tokens());
  if (!worst.path->rollout || share >= needed) return;
  const DraftNode& source = draft.node(worst.path->source);
  draft.error("budget-stalls", place_of(source, kTokensInFlight),
              std::to_string(share) + " tokens in flight cannot hold two groups, and a rank that samples may be lost",
              "one that is left needs room for its own group, and for one of a lost rank",
              std::string(kTokensInFlight) + " >= " + std::to_string(needed) + ", or without elastic");
}

// Of a rank that samples: where another one may be lost it keeps room for what that was to make. On demand what is there gives
// way.
int64_t groups_with_room(const Draft& draft, const PlanRole& role, const Worst& worst) {
  const bool on_demand = draft.plan.budget.admission == Admission::kOnDemand && grows_on_demand(worst);
  return role.elastic && !on_demand ? 2 : 1;
}

}  // namespace

// Where both roles have the tokens of [budget], one is judged for those that train, which need no less.
void check_making(Draft& draft, const std::vector<Worst>& paths) {
  if (!draft.plan.has_roles()) return;
  const PlanRole& role = draft.plan.sampling_role();
  const bool of_budget = own_tokens(draft, role) == nullptr && own_tokens(draft, *training_role(draft)) == nullptr;
  if (of_budget && !role.elastic) return;
  int64_t needed = 0, most_groups = 1;
  const Worst* largest = nullptr;
  for (const Worst& worst : paths) {
    const auto share = draft.node(worst.path->source).source.tokens_in_flight;
    const int64_t count = groups_with_room(draft, role, worst);
    if (share && count > 1) check_share_of_elastic(draft, worst, *share);
    most_groups = std::max(most_groups, count);
    const int64_t groups = saturating_product(count, worst.group_tokens());
    needed = saturating_sum(needed, share.value_or(worst.path->rollout ? groups : 0));
    if (worst.path->rollout && (largest == nullptr || worst.group_tokens() > largest->group_tokens())) largest = &worst;
  }
  if (role.tokens_in_flight >= needed || largest == nullptr) return;
  draft.error("budget-stalls", place_of_tokens(draft, &role),
              std::to_string(role.tokens_in_flight) + " tokens in flight of a rank of role " + sluice::quoted(role.name) +
                  " cannot hold " + (most_groups > 1 ? "two groups" : "a group") + (paths.size() == 1 ? "" : " of each path") +
                  (most_groups > 1 ? ", and a rank that samples may be lost" : ": the run would stall"),
              "a group of '" + largest->maker->name() + "' is at worst " + largest->group_text() + " = " +
                  std::to_string(largest->group_tokens()) + " tokens",
              std::string(kTokensInFlight) + " >= " + std::to_string(needed) + " in [cluster.roles." + role.name + "]");
}

}  // namespace sluice::engine::checking
