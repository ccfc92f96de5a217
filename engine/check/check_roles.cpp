#include <algorithm>
#include <iterator>
#include <utility>

#include "base/text/strings.h"
#include "engine/check/check_draft.h"
#include "engine/check/found_roles.h"
#include "engine/check/report_roles.h"
#include "engine/plan/bind_settings.h"

// Which ranks have which nodes, and what may be set of their roles.
namespace sluice::engine::checking {
namespace {

// A role is called like no executor, so that `on` is never both.
void check_role_names(Draft& draft) {
  for (const PlanRole& role : draft.plan.roles) {
    if (!is_kind_of_executor(draft, role.name)) continue;
    draft.error("bad-name", role.where, sluice::quoted(role.name) + " cannot be the name of a role",
                "on = " + sluice::quoted(role.name) + " names an executor", "call it by what it does: [cluster.roles.train]");
  }
}

// The ranks of the one that trains come first: rank 0 writes the run folder. Those that compute passes of frozen models come
// last.
void order_roles(Draft& draft, const FoundRoles& found) {
  Plan& plan = draft.plan;
  const std::vector<PlanRole> written = std::exchange(plan.roles, {});
  const auto role = [&](const std::string& name) { return *std::ranges::find(written, name, &PlanRole::name); };
  if (found.both_known())
    plan.roles = {role(found.trains_role()), role(found.samples_role())};
  else
    plan.whole = role(found.trains_role());
  std::ranges::copy_if(written, std::back_inserter(plan.forward_roles),
                       [&](const PlanRole& of) { return found.is_forward(of.name); });
  int first = plan.ranks - plan.forward_ranks();
  for (PlanRole& of : plan.forward_roles) of.first_rank = std::exchange(first, first + of.ranks);
  if (plan.whole) plan.whole->first_rank = 0;
  if (!plan.has_roles()) return;
  plan.roles.front().first_rank = 0;
  plan.roles.back().first_rank = plan.owners();
}

const RoleSpec& spec_of(const Draft& draft, const PlanRole& role) {
  return *std::ranges::find_if(draft.spec.roles, [&](const RoleSpec& spec) { return spec.name.text == role.name; });
}

// They are asked for a pass at a time.
void check_forward_roles(Draft& draft) {
  for (const PlanRole& role : draft.plan.forward_roles) {
    const std::string who = "role " + sluice::quoted(role.name);
    if (const Entry* const tokens = own_tokens(draft, role)) {
      draft.error("setting-without-effect", tokens->value.where, who + " computes passes of frozen models, and holds no samples",
                  {}, "remove it; pass_tokens in [budget] is the most that a pass has");
    }
    if (!role.elastic) continue;
    draft.error("setting-unusable", spec_of(draft, role).params.find("elastic")->value.where,
                who + " computes passes of frozen models, and cannot be elastic so far", {},
                "remove it: where one of its ranks is lost, all end, and the run goes on from its last checkpoint");
  }
}

// Of the ranks that sample each group has as many as every other.
void check_sampling_groups(Draft& draft) {
  const PlanRole& role = draft.plan.sampling_role();
  const int64_t together = draft.plan.cluster.tensor_parallel, ranks = role.ranks;
  if (!draft.right.cluster_keys || ranks % together == 0) return;
  draft.error(
      "setting-unusable", place_of(draft.spec.cluster, "tensor_parallel", draft.spec.where),
      plural(ranks, "rank") + " of role " + sluice::quoted(role.name) + " cannot be parted into groups of " +
          std::to_string(together) + ", which sample together",
      {},
      "ranks = " + std::to_string((ranks / together + 1) * together) + " in [cluster.roles." + role.name + "], or " +
          (ranks == 1 ? std::string("remove tensor_parallel") : "a tensor_parallel that divides " + std::to_string(ranks)));
}

// Who trains has what nobody else has; and somebody must be left to make the groups of one that is lost.
void check_elastic(Draft& draft) {
  for (const PlanRole* const of : draft.plan.all_roles()) {
    const PlanRole& role = *of;
    if (!role.elastic || draft.plan.forwards(role.first_rank)) continue;
    const SourceSpan where = spec_of(draft, role).params.find("elastic")->value.where;
    if (draft.plan.trains(role.first_rank)) {
      draft.error("setting-unusable", where, "role " + sluice::quoted(role.name) + " trains, and cannot be elastic", {},
                  "remove it: where a rank that trains is lost, all end, and the run goes on from its last checkpoint");
    } else if (draft.plan.sampling_ranks() > 1) {
      draft.error("setting-unusable", where,
                  "role " + sluice::quoted(role.name) + " is elastic, which does not work with tensor_parallel, so far", {},
                  "remove elastic, or tensor_parallel in [cluster]");
    } else if (role.ranks == 1) {
      draft.error("setting-without-effect", where,
                  "role " + sluice::quoted(role.name) + " is elastic and has one rank: nobody else could make its groups", {},
                  "ranks = 2, or remove elastic");
    }
  }
}

}  // namespace

std::string without_role(const std::string& executor) {
  const size_t slash = executor.find('/');
  return slash == std::string::npos ? executor : executor.substr(slash + 1);
}

const Entry* own_tokens(const Draft& draft, const PlanRole& role) { return spec_of(draft, role).params.find("tokens_in_flight"); }

SourceSpan place_of_tokens(const Draft& draft, const PlanRole* role) {
  const Entry* own = role == nullptr ? nullptr : own_tokens(draft, *role);
  return own != nullptr ? own->value.where : place_of(draft.spec.budget, "tokens_in_flight", draft.spec.where);
}

void check_roles(Draft& draft) {
  check_role_names(draft);
  const FoundRoles found(draft);
  report_roles(draft, found);
  if (!draft.plan.has_roles()) return;
  draft.roles_known = found.both_known() || found.one_does_the_rest();
  if (!draft.roles_known) return;
  order_roles(draft, found);
  if (draft.plan.has_roles()) check_sampling_groups(draft);
  check_elastic(draft);
  check_forward_roles(draft);
  if (draft.right.cluster_keys) settle_slots(draft.spec, draft.problems, draft.plan);
}

}  // namespace sluice::engine::checking
