#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "base/text/strings.h"
#include "engine/check/check_draft.h"
#include "engine/plan/bind_settings.h"

// Which ranks have which nodes: those of one role sample, and those of another do all the rest, or one does both. Further ones
// compute passes of frozen models.
namespace sluice::engine::checking {
namespace {

/// What `on` says in front of a slash, or as a whole.
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

// Ranks of their own can compute what it does with models: these are frozen, and it only reads them.
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

// A role is called like no executor, so that `on` is never both.
void check_role_names(Draft& draft) {
  for (const PlanRole& role : draft.plan.roles) {
    if (!is_kind_of_executor(draft, role.name)) continue;
    draft.error("bad-name", role.where, sluice::quoted(role.name) + " cannot be the name of a role",
                "on = " + sluice::quoted(role.name) + " names an executor", "call it by what it does: [cluster.roles.train]");
  }
}

class RoleRules {
 public:
  explicit RoleRules(Draft& draft) : draft_(draft) {
    for (const PlanRole& role : draft.plan.roles) names_.push_back(role.name);
  }

  void check() {
    for (DraftNode& node : draft_.nodes) take_role(node);
    if (names_.empty()) return report_unknown();
    samples_ = common_role(/*sampling=*/true), trains_ = common_role(/*sampling=*/false);
    if (std::string meant = role_meant_for_the_rest(); !meant.empty()) trains_ = std::move(meant);
    find_forward_roles();
    if (has_nothing_to_part()) return;
    report_unknown();
    report_without();
    report_misplaced();
    report_unused();
    report_role_of_everything();
  }

  bool both_known() const { return !samples_.empty() && !trains_.empty() && samples_ != trains_; }

  /// One role does all but what others compute of frozen models.
  bool one_does_the_rest() const { return !forward_.empty() && !trains_.empty() && (samples_.empty() || samples_ == trains_); }

  /// Roles of what samples, and of all else; empty: not known.
  const std::string& samples_role() const { return samples_; }
  const std::string& trains_role() const { return trains_; }
  bool is_forward(const std::string& role) const { return std::ranges::find(forward_, role) != forward_.end(); }

 private:
  bool is_role(const std::string& name) const { return std::ranges::find(names_, name) != names_.end(); }

  // A source draws on all ranks; where it has a rollout, `on` is that one's.
  bool needs_no_role(const DraftNode& node) const {
    if (node.type == nullptr || node.type->kind != NodeKind::kSource) return false;
    const DraftPath* path = draft_.path_of(node);
    return path == nullptr || path->rollout.has_value();
  }

  // Without roles only what is unlike any executor means one.
  bool means_role(const Name& on) const {
    if (on.text.empty() || names_executor(draft_, on)) return false;
    if (on.text.find('/') != std::string::npos) return true;
    if (!names_.empty()) return true;
    const auto begins = [&](const char* executor) { return on.text.starts_with(executor); };
    const bool is_like_executor = std::ranges::any_of(std::array{"cpu", "gpu", "cuda"}, begins);
    return !is_like_executor && is_plain_name(on.text) && did_you_mean(on.text, {"cpu", "cuda"}).empty();
  }

  void take_role(DraftNode& node) {
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

  // All that is after a source is of one kind, as far as all types are known.
  bool has_nothing_to_part() {
    if (!forward_.empty()) return false;
    const auto is_unknown = [](const DraftNode& node) { return node.type == nullptr; };
    if (draft_.nodes.empty() || std::ranges::any_of(draft_.nodes, is_unknown)) return false;
    const auto does_more = [&](const DraftNode& node) { return !samples(node) && !needs_no_role(node); };
    const bool some_sample = std::ranges::any_of(draft_.nodes, samples), some_more = std::ranges::any_of(draft_.nodes, does_more);
    if (some_sample && some_more) return false;
    draft_.error("role-misplaced", draft_.plan.training_role().where,
                 std::string("roles part what samples from all else, and ") +
                     (some_sample ? "all that is here samples" : "nothing here samples"),
                 "without roles every rank does everything", "remove [cluster.roles], and on in all nodes");
    return true;
  }

  // What says where all is that does not sample: first of all a node on which a model is trained.
  int weight(const DraftNode& node) const { return updates_model(node) ? 2 : only_reads_frozen(draft_, node) ? 0 : 1; }

  // Of all nodes that sample, or of all others: the one that says it, or the first one of these.
  std::string common_role(bool sampling) const {
    const DraftNode* found = nullptr;
    for (const DraftNode& node : draft_.nodes) {
      if (node.role.empty() || node.type == nullptr || samples(node) != sampling) continue;
      if (found == nullptr || weight(node) > weight(*found)) found = &node;
    }
    return found == nullptr ? std::string() : found->role;
  }

  bool is_on_any_node(const std::string& role) const {
    return std::ranges::find(draft_.nodes, role, &DraftNode::role) != draft_.nodes.end();
  }

  // Where of all that does not sample only readers of frozen models are on a role: the one that no node is on, for what is on
  // none.
  std::string role_meant_for_the_rest() const {
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

  void find_forward_roles() {
    for (const std::string& name : names_) {
      const auto is_there = [&](const DraftNode& node) { return node.role == name && only_reads_frozen(draft_, node); };
      if (name != samples_ && name != trains_ && std::ranges::any_of(draft_.nodes, is_there)) forward_.push_back(name);
    }
  }

  // Than those of what samples and of all else, as far as these are known.
  bool has_other_roles() const {
    return std::ranges::any_of(names_, [&](const std::string& name) { return name != samples_ && name != trains_; });
  }

  // The role that the node should have; empty: any.
  std::string fitting_role(const DraftNode& node) const {
    if (node.type == nullptr) return {};
    const std::string &own = samples(node) ? samples_ : trains_, &other = samples(node) ? trains_ : samples_;
    if (only_reads_frozen(draft_, node) && has_other_roles()) return {};
    if (!own.empty() || other.empty() || names_.size() != 2) return own;
    const std::string& left = names_.front() == other ? names_.back() : names_.front();
    return is_forward(left) ? other : left;
  }

  // That the node has asked for without a role.
  std::string executor_behind(const DraftNode& node) const {
    const Name& on = node.spec->on;
    return names_executor(draft_, on) ? "/" + on.text : std::string();
  }

  // "on = "train"", or for each role, with the executor after it that the node has asked for.
  std::string choices_for(const DraftNode& node) const {
    const std::string executor = executor_behind(node), fitting = fitting_role(node);
    std::vector<std::string> texts;
    for (const std::string& name : names_) {
      const bool is_for_samples = name == samples_ && samples_ != trains_;
      if (fitting.empty() && node.type != nullptr && is_for_samples != samples(node) && !samples_.empty()) continue;
      if (fitting.empty() || name == fitting) texts.push_back("on = " + sluice::quoted(name + executor));
    }
    return join(texts, " or ");
  }

  // A role that is not there is reported once, with all nodes on it.
  void report_unknown() {
    std::vector<std::string> reported;
    for (const DraftNode* node : unknown_) {
      const std::string name = first_part(node->spec->on);
      if (std::ranges::find(reported, name) != reported.end()) continue;
      reported.push_back(name);
      const std::string near = did_you_mean(name, names_);
      if (!near.empty()) meant_.push_back(near);
      draft_.error("role-unknown", node->spec->on.where,
                   "'" + node->name() + "' is on role " + sluice::quoted(name) + ", and there is no [cluster.roles." + name + "]",
                   near.empty() ? std::string() : "did you mean " + sluice::quoted(near) + "?", help_for_unknown(*node, name),
                   others_on(name, *node));
    }
  }

  std::string help_for_unknown(const DraftNode& node, const std::string& name) const {
    if (const std::string near = did_you_mean(name, names_); !near.empty()) {
      const std::string meant = "on = " + sluice::quoted(near + executor_behind(node)), choices = choices_for(node);
      return choices.find(meant) == std::string::npos ? choices : meant;
    }
    const std::string add = "add [cluster.roles." + name + "] with ranks";
    if (names_.empty()) return add + ", or name an executor, such as \"cpu:1\"";
    return names_.size() < 2 ? add + ", or " + choices_for(node) : choices_for(node);
  }

  std::vector<std::string> others_on(const std::string& name, const DraftNode& first) const {
    std::vector<std::string> others;
    for (const DraftNode* node : unknown_) {
      if (node != &first && first_part(node->spec->on) == name) others.push_back("'" + node->name() + "'");
    }
    if (others.empty()) return {};
    return {"so " + std::string(others.size() == 1 ? "is " : "are ") + join(others, ", ")};
  }

  void report_without() {
    for (const DraftNode* node : without_) {
      const Name& on = node->spec->on;
      draft_.error("node-without-role", on.text.empty() ? place_of(*node) : on.where,
                   "'" + node->name() + "' is on no role, though [cluster] has some", {}, choices_for(*node));
    }
  }

  void report_misplaced() {
    for (const DraftNode& node : draft_.nodes) {
      const std::string& common = samples(node) ? samples_ : trains_;
      if (node.role.empty() || node.type == nullptr || node.role == common) continue;
      if (is_forward(node.role) && only_reads_frozen(draft_, node)) continue;
      draft_.error("role-misplaced", node.spec->on.where,
                   "'" + node.name() + "' is on role " + sluice::quoted(node.role) + ", and " +
                       example_on(common, samples(node)) + " " + sluice::quoted(common),
                   rule_of(node), "on = " + sluice::quoted(common));
    }
  }

  // Why it cannot be there.
  std::string rule_of(const DraftNode& node) const {
    if (samples(node)) return "all that samples is on one role";
    if (node.role == samples_) return "all that does not sample is on one role, but for what only reads frozen models";
    return "only what reads frozen models, and nothing else of models, may be on a role of its own";
  }

  std::string example_on(const std::string& role, bool sampling) const {
    const auto is_there = [&](const DraftNode& node) { return node.role == role && samples(node) == sampling; };
    const auto trains_there = [&](const DraftNode& node) { return is_there(node) && updates_model(node); };
    auto example = std::ranges::find_if(draft_.nodes, trains_there);
    if (example == draft_.nodes.end()) example = std::ranges::find_if(draft_.nodes, is_there);
    return example == draft_.nodes.end() ? "all else belongs on" : "'" + example->name() + "' on";
  }

  // Not where another problem says already which nodes should be on it.
  void report_unused() {
    if (!without_.empty() || is_role_of_everything()) return;
    for (const PlanRole& role : draft_.plan.roles) {
      if (is_on_any_node(role.name) || std::ranges::find(meant_, role.name) != meant_.end()) continue;
      const std::string near = did_you_mean(role.name, others_than(role.name));
      draft_.error("role-unused", role.where, "no node is on role " + sluice::quoted(role.name),
                   near.empty() ? std::string() : "did you mean " + sluice::quoted(near) + "?",
                   both_known() ? "remove it: what samples is on " + sluice::quoted(samples_) + ", and all else on " +
                                      sluice::quoted(trains_)
                                : "remove it, or name it in on of a node");
    }
  }

  std::vector<std::string> others_than(const std::string& name) const {
    std::vector<std::string> others = names_;
    std::erase(others, name);
    return others;
  }

  bool is_role_of_everything() const { return !samples_.empty() && samples_ == trains_ && forward_.empty(); }

  void report_role_of_everything() {
    if (!is_role_of_everything() || !unknown_.empty() || !without_.empty()) return;
    const auto& roles = draft_.plan.roles;
    const auto other = std::ranges::find_if(roles, [&](const PlanRole& role) { return role.name != samples_; });
    const std::string sampler = std::ranges::find_if(draft_.nodes, samples)->name();
    const std::string name = other == roles.end() ? "NAME" : other->name, on = "on = " + sluice::quoted(name);
    draft_.error("role-misplaced", std::ranges::find(roles, samples_, &PlanRole::name)->where,
                 "role " + sluice::quoted(samples_) + " has what samples and all else, too",
                 "without roles every rank does everything",
                 (other == roles.end() ? "add [cluster.roles.NAME] with ranks, and " + on : on) + " in [nodes." + sampler +
                     "]; or remove [cluster.roles], and on in all nodes");
  }

  Draft& draft_;
  std::vector<std::string> names_;
  std::vector<const DraftNode*> unknown_;  // on a role that is not there
  std::vector<const DraftNode*> without_;  // on none
  std::vector<std::string> meant_;         // roles that were, as it seems, misspelt
  std::string samples_, trains_;
  std::vector<std::string> forward_;  // roles that compute passes of frozen models
};

// The ranks of the one that trains come first: rank 0 writes the run folder. Those that compute passes of frozen models come
// last.
void order_roles(Draft& draft, const RoleRules& rules) {
  Plan& plan = draft.plan;
  const std::vector<PlanRole> written = std::exchange(plan.roles, {});
  const auto role = [&](const std::string& name) { return *std::ranges::find(written, name, &PlanRole::name); };
  if (rules.both_known())
    plan.roles = {role(rules.trains_role()), role(rules.samples_role())};
  else
    plan.whole = role(rules.trains_role());
  std::ranges::copy_if(written, std::back_inserter(plan.forward_roles),
                       [&](const PlanRole& of) { return rules.is_forward(of.name); });
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
  RoleRules rules(draft);
  rules.check();
  if (!draft.plan.has_roles()) return;
  draft.roles_known = rules.both_known() || rules.one_does_the_rest();
  if (!draft.roles_known) return;
  order_roles(draft, rules);
  if (draft.plan.has_roles()) check_sampling_groups(draft);
  check_elastic(draft);
  check_forward_roles(draft);
  if (draft.right.cluster_keys) settle_slots(draft.spec, draft.problems, draft.plan);
}

}  // namespace sluice::engine::checking
