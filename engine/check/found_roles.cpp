#include "engine/check/found_roles.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "base/text/strings.h"

namespace sluice::engine::checking {
namespace {

// What says where all is that does not sample: first of all a node on which a model is trained.
int weight(const Draft& draft, const DraftNode& node) { return updates_model(node) ? 2 : only_reads_frozen(draft, node) ? 0 : 1; }

}  // namespace

std::string first_part(const Name& on) { return on.text.substr(0, on.text.find('/')); }

bool is_kind_of_executor(const Draft& draft, const std::string& name) {
  return name == "cpu" || draft.registry.find_device_kind(name) != nullptr;
}

bool names_executor(const Draft& draft, const Name& on) {
  const std::string first = first_part(on);
  return is_kind_of_executor(draft, first) || first.find(':') != std::string::npos;
}

bool samples(const DraftNode& node) { return node.type != nullptr && node.type->kind == NodeKind::kRollout; }

bool updates_model(const DraftNode& node) {
  return node.needs && std::ranges::any_of(node.needs->models, [](const ModelNeed& n) { return n.use == ModelUse::kUpdates; });
}

bool only_reads_frozen(const Draft& draft, const DraftNode& node) {
  if (node.type == nullptr || node.type->kind != NodeKind::kOrdinary || !node.needs || node.needs->models.empty()) return false;
  const auto is_used_otherwise = [&](const std::string& model) {
    return std::ranges::any_of(draft.nodes, [&](const DraftNode& other) {
      return other.needs && std::ranges::any_of(other.needs->models, [&](const ModelNeed& need) {
               return need.model == model && need.use != ModelUse::kReads;
             });
    });
  };
  return std::ranges::none_of(node.needs->models, [&](const ModelNeed& need) { return is_used_otherwise(need.model); });
}

FoundRoles::FoundRoles(Draft& draft) : draft_(draft) {
  for (const PlanRole& role : draft.plan.roles) names_.push_back(role.name);
  for (DraftNode& node : draft_.nodes) take_role(node);
  if (names_.empty()) return;
  samples_ = common_role(/*sampling=*/true), trains_ = common_role(/*sampling=*/false);
  if (std::string meant = role_meant_for_the_rest(); !meant.empty()) trains_ = std::move(meant);
  find_forward_roles();
}

bool FoundRoles::is_role(const std::string& name) const { return std::ranges::find(names_, name) != names_.end(); }

// A source draws on all ranks; where it has a rollout, `on` is that one's.
bool FoundRoles::needs_no_role(const DraftNode& node) const {
  if (node.type == nullptr || node.type->kind != NodeKind::kSource) return false;
  const DraftPath* path = draft_.path_of(node);
  return path == nullptr || path->rollout.has_value();
}

// Without roles only what is unlike any executor means one.
bool FoundRoles::means_role(const Name& on) const {
  if (on.text.empty() || names_executor(draft_, on)) return false;
  if (on.text.find('/') != std::string::npos) return true;
  if (!names_.empty()) return true;
  const auto begins = [&](const char* executor) { return on.text.starts_with(executor); };
  const bool is_like_executor = std::ranges::any_of(std::array{"cpu", "gpu", "cuda"}, begins);
  return !is_like_executor && is_plain_name(on.text) && did_you_mean(on.text, {"cpu", "cuda"}).empty();
}

void FoundRoles::take_role(DraftNode& node) {
  const Name& on = node.spec->on;
  node.place = on;
  const std::string first = first_part(on);
  if (!names_.empty() && needs_no_role(node)) {
    node.place.text.clear();
  } else if (is_role(first)) {
    node.role = first;
    node.place.text = first.size() == on.text.size() ? std::string() : on.text.substr(first.size() + 1);
  } else if (means_role(on)) {
    unknown_.push_back(&node);
    node.place.text.clear();
  } else if (!names_.empty()) {
    without_.push_back(&node);
    node.place.text.clear();
  }
}

bool FoundRoles::has_nothing_to_part() const {
  if (!forward_.empty()) return false;
  const auto is_unknown = [](const DraftNode& node) { return node.type == nullptr; };
  if (draft_.nodes.empty() || std::ranges::any_of(draft_.nodes, is_unknown)) return false;
  const auto does_more = [&](const DraftNode& node) { return !samples(node) && !needs_no_role(node); };
  const bool some_sample = std::ranges::any_of(draft_.nodes, samples), some_more = std::ranges::any_of(draft_.nodes, does_more);
  return !some_sample || !some_more;
}

// Of all nodes that sample, or of all others: the one that says it, or the first one of these.
std::string FoundRoles::common_role(bool sampling) const {
  const DraftNode* found = nullptr;
  for (const DraftNode& node : draft_.nodes) {
    if (node.role.empty() || node.type == nullptr || samples(node) != sampling) continue;
    if (found == nullptr || weight(draft_, node) > weight(draft_, *found)) found = &node;
  }
  return found == nullptr ? std::string() : found->role;
}

bool FoundRoles::is_on_any_node(const std::string& role) const {
  return std::ranges::find(draft_.nodes, role, &DraftNode::role) != draft_.nodes.end();
}

// Where of all that does not sample only readers of frozen models are on a role: the one that no node is on, for what is on
// none.
std::string FoundRoles::role_meant_for_the_rest() const {
  const auto belongs_to_rest = [&](const DraftNode& node) {
    return node.type != nullptr && !samples(node) && !only_reads_frozen(draft_, node);
  };
  const auto has_role = [&](const DraftNode& node) { return !node.role.empty() && belongs_to_rest(node); };
  const auto has_none = [&](const DraftNode* node) { return belongs_to_rest(*node); };
  if (std::ranges::any_of(draft_.nodes, has_role)) return {};
  if (std::ranges::none_of(without_, has_none) && std::ranges::none_of(unknown_, has_none)) return {};
  std::vector<std::string> free;
  std::ranges::copy_if(names_, std::back_inserter(free), [&](const std::string& name) { return !is_on_any_node(name); });
  return free.size() == 1 ? free.front() : std::string();
}

void FoundRoles::find_forward_roles() {
  for (const std::string& name : names_) {
    const auto is_there = [&](const DraftNode& node) { return node.role == name && only_reads_frozen(draft_, node); };
    if (name != samples_ && name != trains_ && std::ranges::any_of(draft_.nodes, is_there)) forward_.push_back(name);
  }
}

bool FoundRoles::has_other_roles() const {
  return std::ranges::any_of(names_, [&](const std::string& name) { return name != samples_ && name != trains_; });
}

bool FoundRoles::is_forward(const std::string& role) const { return std::ranges::find(forward_, role) != forward_.end(); }

}  // namespace sluice::engine::checking
