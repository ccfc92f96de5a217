#include "engine/check/report_roles.h"

#include <algorithm>
#include <string>
#include <vector>

#include "base/text/strings.h"

namespace sluice::engine::checking {
namespace {

class RoleReports {
 public:
  RoleReports(Draft& draft, const FoundRoles& roles)
      : draft_(draft),
        roles_(roles),
        names_(roles.names()),
        unknown_(roles.unknown()),
        without_(roles.without()),
        samples_(roles.samples_role()),
        trains_(roles.trains_role()) {}

  void report() {
    if (names_.empty()) return report_unknown();
    if (roles_.has_nothing_to_part()) return report_nothing_to_part();
    report_unknown();
    report_without();
    report_misplaced();
    report_unused();
    report_role_of_everything();
  }

 private:
  void report_nothing_to_part() {
    const bool some_sample = std::ranges::any_of(draft_.nodes, samples);
    draft_.error("role-misplaced", draft_.plan.training_role().where,
                 std::string("roles part what samples from all else, and ") +
                     (some_sample ? "all that is here samples" : "nothing here samples"),
                 "without roles every rank does everything", "remove [cluster.roles], and on in all nodes");
  }

  // The role that the node should have; empty: any.
  std::string fitting_role(const DraftNode& node) const {
    if (node.type == nullptr) return {};
    const std::string &own = samples(node) ? samples_ : trains_, &other = samples(node) ? trains_ : samples_;
    if (only_reads_frozen(draft_, node) && roles_.has_other_roles()) return {};
    if (!own.empty() || other.empty() || names_.size() != 2) return own;
    const std::string& left = names_.front() == other ? names_.back() : names_.front();
    return roles_.is_forward(left) ? other : left;
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
      if (roles_.is_forward(node.role) && only_reads_frozen(draft_, node)) continue;
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
    if (!without_.empty() || roles_.one_does_everything()) return;
    for (const PlanRole& role : draft_.plan.roles) {
      if (roles_.is_on_any_node(role.name) || std::ranges::find(meant_, role.name) != meant_.end()) continue;
      const std::string near = did_you_mean(role.name, others_than(role.name));
      draft_.error("role-unused", role.where, "no node is on role " + sluice::quoted(role.name),
                   near.empty() ? std::string() : "did you mean " + sluice::quoted(near) + "?",
                   roles_.both_known() ? "remove it: what samples is on " + sluice::quoted(samples_) + ", and all else on " +
                                             sluice::quoted(trains_)
                                       : "remove it, or name it in on of a node");
    }
  }

  std::vector<std::string> others_than(const std::string& name) const {
    std::vector<std::string> others = names_;
    std::erase(others, name);
    return others;
  }

  void report_role_of_everything() {
    if (!roles_.one_does_everything() || !unknown_.empty() || !without_.empty()) return;
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
  const FoundRoles& roles_;
  const std::vector<std::string>& names_;
  const std::vector<const DraftNode*>& unknown_;  // on a role that is not there
  const std::vector<const DraftNode*>& without_;  // on none
  const std::string &samples_, &trains_;
  std::vector<std::string> meant_;  // roles that were, as it seems, misspelt
};

}  // namespace

void report_roles(Draft& draft, const FoundRoles& roles) { RoleReports(draft, roles).report(); }

}  // namespace sluice::engine::checking
