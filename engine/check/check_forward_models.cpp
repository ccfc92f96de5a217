#include <algorithm>
#include <utility>

#include "base/text/strings.h"
#include "engine/check/check_draft.h"

// Models whose passes ranks of a role of their own compute: nobody else has their weights.
namespace sluice::engine::checking {
namespace {

const PlanRole* forward_role_of(const Draft& draft, const DraftNode& node) {
  const auto& roles = draft.plan.forward_roles;
  const auto found = std::ranges::find(roles, node.role, &PlanRole::name);
  return node.role.empty() || found == roles.end() ? nullptr : &*found;
}

const ModelNeed* need_of(const DraftNode& node, const std::string& model) {
  if (!node.needs) return nullptr;
  const auto found = std::ranges::find(node.needs->models, model, &ModelNeed::model);
  return found == node.needs->models.end() ? nullptr : &*found;
}

// A source has the text of a model alone.
const DraftNode* user_elsewhere(const Draft& draft, const DraftModel& model, const PlanRole& role) {
  const auto found = std::ranges::find_if(draft.nodes, [&](const DraftNode& node) {
    const bool computes = node.type != nullptr && node.type->kind != NodeKind::kSource;
    return computes && node.role != role.name && need_of(node, model.spec->name.text) != nullptr;
  });
  return found == draft.nodes.end() ? nullptr : &*found;
}

void report_made_from(Draft& draft, const DraftNode& node, const ModelNeed& need, const DraftModel& model) {
  const std::string &name = model.spec->name.text, trains = sluice::quoted(draft.plan.role_of(0)->name);
  draft.error("role-misplaced", node.spec->on.where,
              "'" + node.name() + "' is on role " + sluice::quoted(node.role) + ", and model '" + need.model +
                  "' has weights of '" + model.facts.made_from() + "', which are on " + trains,
              "ranks of a role of their own have weights of their own",
              "checkpoint in [models." + name + "] in place of " + (model.facts.base_of.empty() ? "ema" : "base_of") +
                  ", or on = " + trains);
}

void check_of_node(Draft& draft, const DraftNode& node, const PlanRole& role, const ModelNeed& need) {
  const int found = draft.find_model(need.model);
  if (found < 0) return;
  DraftModel& model = draft.models[static_cast<size_t>(found)];
  const bool is_made_from_another = !model.facts.made_from().empty();
  const bool is_used_otherwise = model.updater >= 0 || model.sampler >= 0 || model.publisher >= 0;
  if (is_used_otherwise && !is_made_from_another) return;  // told of where the node is
  const bool is_told = std::exchange(model.forwarded, true);
  if (model.params == nullptr || is_told) return;
  if (is_made_from_another) return report_made_from(draft, node, need, model);
  const DraftNode* const other = user_elsewhere(draft, model, role);
  if (other == nullptr || other->role.empty()) return;
  draft.error("role-misplaced", node.spec->on.where,
              "'" + node.name() + "' is on role " + sluice::quoted(role.name) + ", and '" + other->name() +
                  "', which reads model '" + need.model + "' too, on " + sluice::quoted(other->role),
              "the ranks of one role have the model", "put both on one role, or give each a model of its own in [models]");
}

}  // namespace

void check_forward_models(Draft& draft) {
  for (const DraftNode& node : draft.nodes) {
    const PlanRole* const role = forward_role_of(draft, node);
    if (role == nullptr || !node.needs) continue;
    for (const ModelNeed& need : node.needs->models) check_of_node(draft, node, *role, need);
  }
}

}  // namespace sluice::engine::checking
