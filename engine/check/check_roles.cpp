#include <algorithm>
#include <set>
#include <utility>

#include "base/strings.h"
#include "engine/check/check_draft.h"
#include "engine/plan/bind_settings.h"

// Which ranks have which nodes: those of one role sample, and those of another do all the rest.
namespace sluice::engine::checking {
namespace {

std::vector<std::string> role_names(const Draft& draft) {
  std::vector<std::string> names;
  for (const PlanRole& role : draft.plan.roles) names.push_back(role.name);
  return names;
}

std::string choices_of(const Draft& draft) {
  std::vector<std::string> texts;
  for (const std::string& name : role_names(draft)) texts.push_back("on = " + sluice::quoted(name));
  return join(texts, " or ");
}

// A source draws on all ranks; where it has a rollout, `on` is that one's.
bool needs_no_role(const Draft& draft, const DraftNode& node) {
  if (node.type == nullptr || node.type->kind != NodeKind::kSource) return false;
  const DraftPath* path = draft.path_of(node);
  return path == nullptr || path->rollout.has_value();
}

// What `on` says in front of a slash, or as a whole, is the role.
void take_role(Draft& draft, DraftNode& node) {
  const Name& on = node.spec->on;
  node.place = on;
  if (draft.plan.roles.empty()) return;
  if (needs_no_role(draft, node)) return node.place.text.clear();
  const std::vector<std::string> names = role_names(draft);
  const size_t slash = on.text.find('/');
  const std::string first = on.text.substr(0, slash);
  if (std::ranges::find(names, first) != names.end()) {
    node.role = first;
    node.place.text = slash == std::string::npos ? std::string() : on.text.substr(slash + 1);
    return;
  }
  const std::string near = on.text.empty() ? std::string() : did_you_mean(first, names);
  if (!near.empty() || slash != std::string::npos) {
    draft.error("role-unknown", on.where,
                "'" + node.name() + "' is on role " + sluice::quoted(first) + ", which [cluster] does not have",
                near.empty() ? std::string() : "did you mean " + sluice::quoted(near) + "?", choices_of(draft));
  } else {
    draft.error("node-without-role", on.text.empty() ? place_of(node) : on.where,
                "'" + node.name() + "' is on no role, though [cluster] has some", {}, choices_of(draft));
  }
  node.place.text.clear();
}

// The role of all nodes that sample, or of all others. The first one says which.
std::string common_role(Draft& draft, bool sampling) {
  const DraftNode* first = nullptr;
  for (const DraftNode& node : draft.nodes) {
    if (node.role.empty() || node.type == nullptr || (node.type->kind == NodeKind::kRollout) != sampling) continue;
    if (first == nullptr) first = &node;
    if (node.role == first->role) continue;
    draft.error("role-misplaced", node.spec->on.where,
                "'" + node.name() + "' is on role " + sluice::quoted(node.role) + ", and '" + first->name() + "' on " +
                    sluice::quoted(first->role),
                sampling ? "all that samples is on one role" : "all that does not sample is on one role",
                "on = " + sluice::quoted(first->role) + " in [nodes." + node.name() + "]");
  }
  return first == nullptr ? std::string() : first->role;
}

void report_role_of_everything(Draft& draft, const std::string& name) {
  const auto& roles = draft.plan.roles;
  const auto other = std::ranges::find_if(roles, [&](const PlanRole& role) { return role.name != name; });
  const auto& where = std::ranges::find(roles, name, &PlanRole::name)->where;
  draft.error("role-misplaced", where, "role " + sluice::quoted(name) + " has all nodes",
              "without roles every rank does everything",
              other == roles.end() ? "remove it, and on in all nodes"
                                   : "on = " + sluice::quoted(other->name) + " in the node that samples, or remove both roles");
}

// The ranks of the one that trains come first: rank 0 writes the run folder.
void order_roles(Draft& draft, const std::string& trains, const std::string& samples) {
  std::vector<PlanRole> ordered;
  int first = 0;
  for (const std::string& name : {trains, samples}) {
    PlanRole role = *std::ranges::find(draft.plan.roles, name, &PlanRole::name);
    role.first_rank = std::exchange(first, first + role.ranks);
    ordered.push_back(std::move(role));
  }
  draft.plan.roles = std::move(ordered);
}

void check_unused(Draft& draft, const std::string& trains, const std::string& samples) {
  for (const PlanRole& role : draft.plan.roles) {
    if (role.name == trains || role.name == samples) continue;
    draft.error("role-unused", role.where, "no node is on role " + sluice::quoted(role.name), {},
                "remove it, or name it in on of a node");
  }
}

// Groups with credit on demand are handed on in order by whoever makes them, which those of several ranks would not be.
void check_admission(Draft& draft) {
  if (draft.plan.budget.admission != Admission::kOnDemand) return;
  draft.error("setting-unusable", place_of(draft.spec.budget, "admission", draft.spec.where),
              "admission = \"on_demand\" does not work with roles, so far", {}, "admission = \"worst_case\"");
}

}  // namespace

std::string without_role(const std::string& executor) {
  const size_t slash = executor.find('/');
  return slash == std::string::npos ? executor : executor.substr(slash + 1);
}

void check_roles(Draft& draft) {
  const size_t before = draft.problems.size();
  for (DraftNode& node : draft.nodes) take_role(draft, node);
  if (draft.plan.roles.empty() || !draft.settings_bound || draft.problems.size() > before) return;
  const std::string samples = common_role(draft, /*sampling=*/true), trains = common_role(draft, /*sampling=*/false);
  check_admission(draft);
  check_unused(draft, trains, samples);
  if (!samples.empty() && samples == trains) report_role_of_everything(draft, samples);
  if (draft.problems.size() > before) return;
  if (samples.empty() || trains.empty()) return report_role_of_everything(draft, samples.empty() ? trains : samples);
  order_roles(draft, trains, samples);
  settle_slots(draft.spec, draft.problems, draft.plan);
}

}  // namespace sluice::engine::checking
