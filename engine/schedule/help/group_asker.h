#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "engine/contract/columns/micro_batch.h"
#include "engine/contract/columns/token_budget.h"
#include "engine/contract/world/world.h"
#include "engine/schedule/help/group_links.h"
#include "engine/schedule/help/group_message.h"
#include "engine/schedule/help/owners_seen.h"
#include "engine/schedule/help/round.h"

namespace sluice::engine {

/// What a rank does that makes groups of others: it asks an owner for one, gets its prompt or a refusal, and gives back what it
/// has made. The made group stays here, with its credit, until its owner has room for it and fetches it.
///
/// One question at a time on a path, whose index into Plan::paths names it. Belongs to MutualHelp. Threads: all calls from any;
/// nobody waits inside a call. The events are called on the threads of mail and parcels, without a lock, in the order in which
/// things have come.
class GroupAsker {
 public:
  struct Events {
    std::function<void(int64_t bytes)> holds = {};  // more, or less, of columns of groups that it has made for others
    // Of a rank that only samples:
    std::function<void(int path, int owner, const OwnerNews& news)> news = {};
    std::function<void(int path, const OwnersSeen::Offer& asked)> refused = {};  // the owner has none left there
    std::function<void(int64_t last)> ends_behind = {};                          // no rank goes on after that iteration
  };
  /// What has become of a question.
  struct Answer {
    int owner = 0;
    std::optional<Group> group;  // nothing: the owner has none left there
  };

  /// `links` outlive it.
  GroupAsker(GroupLinks& links, size_t paths, Events events) : links_(links), events_(std::move(events)), answers_(paths) {}

  /// `only_again`: it has room for one that was given before, and for no other.
  void ask(int path, int owner, Round round, bool only_again = false);
  std::optional<Answer> take_answer(int path);
  bool has_answer(int path) const;

  /// The credit is free when the owner has the group. `metrics`: that go with it.
  void give_back(int path, int owner, const Group& group, Credit credit, const Contribution& metrics = {});

  /// No samples are made for it.
  void decline(int path, int owner, int64_t iteration, int64_t group, const Contribution& metrics);

  /// Credit of groups that it has given back and still has. It may be given up: then it is free from now on.
  bool has_credit(int path) const { return some_lent(path, /*with_credit=*/true); }
  void give_up_credit(int path);
  bool has_given_up_credit(int path) const { return some_lent(path, /*with_credit=*/false); }  // of some that are still here

  // What owners say, by mail.
  void be_given(int owner, const GroupMessage& group, ByteReader& rest);
  void be_refused(int owner, const GroupMessage& question, ByteReader& rest);
  void hear_news(int owner, const GroupMessage& of, ByteReader& rest);
  void hear_end_behind(const GroupMessage& last);

  /// The driver goes: what is still here needs no credit any more.
  void forget();

 private:
  using Kind = GroupMessage::Kind;
  using Under = std::tuple<int, int64_t, int64_t>;  // path, iteration, group
  struct Lent {
    Credit credit;  // of no tokens: given up
    int64_t bytes = 0;
  };

  void be_answered(int path, Answer answer);
  void be_gone(const Under& under);
  void tell_bytes(int64_t bytes) const;
  bool some_lent(int path, bool with_credit) const;

  GroupLinks& links_;
  const Events events_;
  mutable std::mutex mutex_;                    // guards what follows
  std::vector<std::optional<Answer>> answers_;  // by path
  std::map<Under, Lent> lent_;                  // groups that were made for others, and are still here
};

}  // namespace sluice::engine
