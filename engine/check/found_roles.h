#pragma once

#include <string>
#include <vector>

#include "engine/check/check_draft.h"

namespace sluice::engine::checking {

/// What `on` says in front of a slash, or as a whole.
std::string first_part(const Name& on);

bool is_kind_of_executor(const Draft& draft, const std::string& name);
bool names_executor(const Draft& draft, const Name& on);

bool samples(const DraftNode& node);
bool updates_model(const DraftNode& node);

/// Ranks of their own can compute what it does with models: these are frozen, and it only reads them.
bool only_reads_frozen(const Draft& draft, const DraftNode& node);

/// Which role each node is on, as far as `on` says it, and what each role does: one samples, another has all the rest, or one
/// does both; further ones compute passes of frozen models. Writes role and place of the nodes into the draft, and reports
/// nothing. Lives no longer than the draft.
class FoundRoles {
 public:
  explicit FoundRoles(Draft& draft);

  const std::vector<std::string>& names() const { return names_; }

  /// Roles of what samples, and of all else; empty: not known.
  const std::string& samples_role() const { return samples_; }
  const std::string& trains_role() const { return trains_; }
  const std::string& role_for(const DraftNode& node) const { return samples(node) ? samples_ : trains_; }
  bool is_forward(const std::string& role) const;

  bool both_known() const { return !samples_.empty() && !trains_.empty() && samples_ != trains_; }

  /// One role does all but what others compute of frozen models.
  bool one_does_the_rest() const { return !forward_.empty() && !trains_.empty() && (samples_.empty() || samples_ == trains_); }
  bool one_does_everything() const { return !samples_.empty() && samples_ == trains_ && forward_.empty(); }

  /// All that is after a source is of one kind, as far as all types are known.
  bool has_nothing_to_part() const;

  /// Than those of what samples and of all else, as far as these are known.
  bool has_other_roles() const;

  bool is_on_any_node(const std::string& role) const;

  /// Nodes on a role that is not there, and those on none.
  const std::vector<const DraftNode*>& unknown() const { return unknown_; }
  const std::vector<const DraftNode*>& without() const { return without_; }

 private:
  bool is_role(const std::string& name) const;
  bool needs_no_role(const DraftNode& node) const;
  bool means_role(const Name& on) const;
  void take_role(DraftNode& node);
  std::string common_role(bool sampling) const;
  std::string role_meant_for_the_rest() const;
  void find_forward_roles();

  Draft& draft_;
  std::vector<std::string> names_;
  std::vector<const DraftNode*> unknown_;
  std::vector<const DraftNode*> without_;
  std::string samples_, trains_;
  std::vector<std::string> forward_;  // roles that compute passes of frozen models
};

}  // namespace sluice::engine::checking
