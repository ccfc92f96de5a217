#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "engine/contract/micro_batch.h"
#include "engine/contract/token_budget.h"
#include "engine/plan/plan.h"
#include "engine/ranks/rank_links.h"

namespace sluice::engine {

/// What ranks say and give to each other where one makes groups of another. A rank that has credit left asks another one, its
/// owner, for a group. The owner gives the prompt, or says that it has none. The made group goes back straight to the owner, once
/// that has room for it. Numbers travel as mail, columns as parcels.
///
/// Who asks, who gives and when, the intakes of the paths decide (engine/schedule/helping.h); this carries it out. Paths are named
/// by their index into Plan::paths.
///
/// Owned by the driver and by what is on its way. Threads: all calls from any; nobody waits inside a call. `changed` is called on
/// the threads of mail and parcels, without a lock, when something has come. Failure: a message that is not one of these throws
/// InternalError to the mail.
class MutualHelp : public std::enable_shared_from_this<MutualHelp> {
 public:
  /// Which groups: of one round of an iteration.
  struct Place {
    int64_t iteration = 0;
    int64_t round = 0;

    auto operator<=>(const Place&) const = default;
  };
  struct Asker {
    int rank = 0;
    Place place;
  };
  /// What has become of a question.
  struct Answer {
    int owner = 0;
    std::optional<Group> group;  // nothing: the owner has none left there
  };
  /// A group that another rank has made for this one, and still has.
  struct Made {
    int64_t group = 0;  // its index
    int rank = 0;
    int64_t tokens = 0;
    int64_t bytes = 0;  // of credit of parcels
  };

  MutualHelp(const Plan& plan, RankLinks links, std::function<void()> changed);

  /// Once, before anything else. Ranks may have asked before.
  void listen();

  // Of the rank that makes groups of others: one question at a time on a path.
  void ask(int path, int owner, Place place);
  std::optional<Answer> take_answer(int path);
  void give_back(int path, int owner, const Group& group, Credit credit);  // the credit is free when the owner has the group
  void decline(int path, int owner, int64_t iteration, int64_t group);     // no samples are made for it

  // Of the owner.
  std::optional<Asker> asker_up_to(int path, Place place);  // the first who asks for groups of that place, or of one before it
  void give(int path, const Asker& asker, const Group& prompt);
  void refuse(int path, const Asker& asker);
  void say_none_left(int path, Place place);  // of this rank, there: who asks is refused at once
  std::optional<Made> take_made(int path);
  std::optional<int64_t> take_declined(int path);
  void fetch(int path, int64_t iteration, const Made& made);
  std::optional<Group> take_fetched(int path);

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
    std::deque<int64_t> declined;  // groups
    std::deque<Group> fetched;
    Place none_left{.iteration = -1, .round = 0};  // nor before it
  };
  using Under = std::tuple<int, int64_t, int64_t>;  // path, iteration, group

  ParcelKey key_of(const char* what, int path, int64_t iteration, int64_t group) const;
  void send(int to, std::string message);
  void hear(int from, const std::string& message);
  void be_asked(int path, const Asker& asker);
  void be_answered(int path, Answer answer);
  void expect_prompt(int path, int owner, ParcelKey key, int64_t bytes);
  void take_in(const std::function<void()>& what);
  void drop_credit(const Under& under);
  Path& path_of(int path);
  const Path& path_of(int path) const { return paths_.at(static_cast<size_t>(path)); }

  const RankLinks links_;
  const std::function<void()> changed_;
  std::mutex lifetime_;       // held while something is taken in that has come; guards over_
  bool over_ = false;         // the driver has gone, or goes
  mutable std::mutex mutex_;  // guards what follows
  std::vector<Path> paths_;
  std::map<Under, Credit> lent_;  // of groups that were made for others, and are still here
};

}  // namespace sluice::engine
