#pragma once

#include <functional>
#include <memory>
#include <string>

#include "engine/plan/plan.h"
#include "engine/ranks/rank_links.h"
#include "engine/schedule/help/group_asker.h"
#include "engine/schedule/help/group_links.h"
#include "engine/schedule/help/group_owner.h"
#include "engine/schedule/help/round.h"

namespace sluice::engine {

/// How ranks make groups for each other. A rank that has credit left asks another one, the owner of groups, for one of them. The
/// owner gives the prompt, or says that it has none. The made group goes back straight to the owner, once that has room for it.
/// A rank may do both: what it says when it asks is GroupAsker, what it says of its own groups GroupOwner.
///
/// Who asks, who gives and when, the intakes of the paths decide (engine/schedule/help/helping.h), and on ranks that only sample
/// the rollout workers (engine/schedule/rollout/rollout_worker.h), which are told how far each owner is; this carries it out.
///
/// Belongs to the driver. Threads: all calls from any; nobody waits inside a call, but for what forget() says. Failure: a message
/// that is not one of these throws InternalError to the mail.
class MutualHelp {
 public:
  /// `changed`: something has come. Called on the threads of mail and parcels, without a lock.
  MutualHelp(const Plan& plan, RankLinks links, std::function<void()> changed, GroupAsker::Events events = {});
  ~MutualHelp() { forget(); }
  MutualHelp(const MutualHelp&) = delete;
  MutualHelp& operator=(const MutualHelp&) = delete;

  /// Once, before anything else. Ranks may have asked before.
  void listen();

  GroupAsker& asker() { return asker_; }
  GroupOwner& owner() { return owner_; }

  /// Something has come for this path that was not taken.
  bool has_news(int path, Round round) const { return asker_.has_answer(path) || owner_.has_news(path, round); }

  /// The run ends early on all ranks: what is under way may never come.
  void expect_early_ends() { links_->expect_early_ends(); }

  /// Nothing is taken in any more: the driver goes. Waits for what is being taken in.
  void forget();

 private:
  void hear(int from, const std::string& message);

  const std::shared_ptr<GroupLinks> links_;
  GroupAsker asker_;
  GroupOwner owner_;
};

}  // namespace sluice::engine
