#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "base/numbers/bytes.h"
#include "engine/contract/columns/micro_batch.h"
#include "engine/contract/columns/token_budget.h"
#include "engine/contract/world/world.h"
#include "engine/plan/plan.h"
#include "engine/ranks/rank_links.h"
#include "engine/schedule/help/owners_seen.h"
#include "engine/schedule/help/place.h"

namespace sluice::engine {

/// What ranks say and give to each other where one makes groups of another. A rank that has credit left asks another one, its
/// owner, for a group. The owner gives the prompt, or says that it has none. The made group goes back straight to the owner, once
/// that has room for it. Numbers travel as mail, columns as parcels.
///
/// Who asks, who gives and when, the intakes of the paths decide (engine/schedule/help/helping.h), and on ranks that only sample
/// the rollout workers (engine/schedule/rollout/rollout_worker.h), which are told how far each owner is; this carries it out.
/// Paths are named by their index into Plan::paths.
///
/// A rank that only samples may be lost: what it was given is given again, and nothing of it is heard any more. It may come back
/// as another process, which is told how far this rank is.
///
/// Owned by the driver and by what is on its way. Threads: all calls from any; nobody waits inside a call. The events are called
/// on the threads of mail and parcels, without a lock, in the order in which things have come. Failure: a message that is not one
/// of these throws InternalError to the mail.
class MutualHelp : public std::enable_shared_from_this<MutualHelp> {
 public:
  using Place = engine::Place;

  struct Events {
    std::function<void()> changed;                  // something has come
    std::function<void(int64_t bytes)> holds = {};  // more, or less, of columns of groups that it has made for others
    // Of a rank that only samples:
    std::function<void(int path, int owner, const OwnerNews& news)> news = {};
    std::function<void(int path, const OwnersSeen::Offer& asked)> refused = {};  // the owner has none left there
    std::function<void(int64_t last)> ends_behind = {};                          // no rank goes on after that iteration
  };
  struct Asker {
    int rank = 0;
    Place place;
    bool only_again = false;  // it has room for one that was given before, and for no other
  };
  /// What has become of a question.
  struct Answer {
    int owner = 0;
    std::optional<Group> group;  // nothing: the owner has none left there
  };
  /// A group that another rank has made for this one, and still has. Or, without samples, one that it declines.
  struct Made {
    int64_t group = 0;  // its index
    int rank = 0;
    int64_t tokens = 0;
    int64_t bytes = 0;     // of credit of parcels
    Contribution metrics;  // that the rollout has recorded with it
  };

  MutualHelp(const Plan& plan, RankLinks links, Events events);

  /// Once, before anything else. Ranks may have asked before.
  void listen();

  // Of the rank that makes groups of others: one question at a time on a path.
  void ask(int path, int owner, Place place, bool only_again = false);
  std::optional<Answer> take_answer(int path);
  bool has_answer(int path) const;
  /// The credit is free when the owner has the group. `metrics`: that go with it.
  void give_back(int path, int owner, const Group& group, Credit credit, const Contribution& metrics = {});
  /// Credit of groups that it has given back and still has. It may be given up: then it is free from now on.
  bool has_credit(int path) const;
  void give_up_credit(int path);
  bool has_given_up_credit(int path) const;  // of some that are still here
  /// No samples are made for it.
  void decline(int path, int owner, int64_t iteration, int64_t group, const Contribution& metrics);

  // Of the owner.
  std::optional<Asker> asker_up_to(int path, Place place);  // the first who asks for groups of that place, or of one before it
  void give(int path, const Asker& asker, const Group& prompt);
  void refuse(int path, const Asker& asker);
  void say_none_left(int path, Place place);  // of this rank, there: who asks is refused at once
  void say_some_left(int path, Place place);  // there, after all
  std::optional<Made> take_made(int path);
  std::optional<Made> take_declined(int path);
  void fetch(int path, int64_t iteration, const Made& made);
  std::optional<Group> take_fetched(int path);

  // Of an owner whose groups are made by ranks that only sample:
  void announce(const std::vector<int>& samplers, int path, const OwnerNews& news);
  void announce_end_behind(const std::vector<int>& samplers, int64_t last);
  /// A rank that is lost since the last call: what it was given and this rank has not fetched, nobody has.
  std::optional<int> take_lost(int path);

  /// That rank only samples, and is lost; it is there again.
  void lose(int rank);
  void take_back(int rank);

  /// Something has come for this path that was not taken.
  bool has_news(int path, Place place) const;

  /// The path has ended on this rank.
  void leave(int path) { say_none_left(path, {.iteration = std::numeric_limits<int64_t>::max(), .round = 0}); }

  /// The run ends early on all ranks: what is under way may never come.
  void expect_early_ends();

  /// Nothing is sent or taken in any more: the driver goes.
  void forget();

 private:
  struct Path {
    std::string name;  // of its source
    std::deque<Asker> askers;
    std::optional<Answer> answer;
    std::deque<Made> made;
    std::deque<Made> declined;
    std::deque<Group> fetched;
    std::deque<int> lost;                          // ranks
    Place none_left{.iteration = -1, .round = 0};  // nor before it
    std::string announced;                         // last
  };
  using Under = std::tuple<int, int64_t, int64_t>;  // path, iteration, group
  struct Lent {
    Credit credit;  // of no tokens: given up
    int64_t bytes = 0;
  };

  ParcelKey key_of(const char* what, int path, int64_t iteration, int64_t group) const;
  void send(int to, std::string message);
  void hear(int from, const std::string& message);
  void hear_news(int path, int from, Place place, ByteReader& bytes);
  void hear_made(int path, Made made, ByteReader& bytes, bool is_declined);
  void be_asked(int path, const Asker& asker);
  void be_answered(int path, Answer answer);
  void expect_prompt(int path, int owner, ParcelKey key, int64_t bytes);
  void take_in(const std::function<void()>& what);
  void be_gone(const Under& under);
  void tell_bytes(int64_t bytes) const;
  bool some_lent(int path, bool with_credit) const;
  Path& path_of(int path);
  const Path& path_of(int path) const { return paths_.at(static_cast<size_t>(path)); }

  const RankLinks links_;
  const Events events_;
  std::mutex lifetime_;       // held while something is taken in that has come; guards over_
  bool over_ = false;         // the driver has gone, or goes
  mutable std::mutex mutex_;  // guards what follows
  std::vector<Path> paths_;
  std::map<Under, Lent> lent_;  // groups that were made for others, and are still here
  std::set<int> lost_;          // ranks
};

}  // namespace sluice::engine
