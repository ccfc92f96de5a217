#pragma once

#include <cstdint>
#include <deque>
#include <limits>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/contract/columns/micro_batch.h"
#include "engine/contract/world/world.h"
#include "engine/schedule/help/group_links.h"
#include "engine/schedule/help/group_message.h"
#include "engine/schedule/help/round.h"

namespace sluice::engine {

/// What an owner of groups does, so that others make some of them: it gives their prompts to those who ask, or refuses, and
/// fetches what they have made when it has room for it. To ranks that only sample it tells how far it is.
///
/// Such a rank may be lost: what it was given is given again, and nothing of it is heard any more. It may come back as another
/// process, which is told how far this rank is.
///
/// Paths are named by their index into Plan::paths. Belongs to MutualHelp. Threads: all calls from any; nobody waits inside a
/// call.
class GroupOwner {
 public:
  /// Another rank asks for a group.
  struct Question {
    int rank = 0;
    Round round;
    bool only_again = false;  // it has room for one that was given before, and for no other
  };
  /// A group that another rank has made for this one, and still has. Or, without samples, one that it declines.
  struct Made {
    int64_t group = 0;  // its index
    int rank = 0;
    int64_t tokens = 0;
    int64_t bytes = 0;     // of credit of parcels
    Contribution metrics;  // that the rollout has recorded with it
  };

  /// `links` outlive it.
  GroupOwner(GroupLinks& links, size_t paths) : links_(links), paths_(paths) {}

  /// The first question for groups of that round, or of one before it.
  std::optional<Question> take_question(int path, Round round);
  void give(int path, const Question& question, const Group& prompt);
  void refuse(int path, const Question& question);

  /// This rank has none left there, and refuses who asks at once; or has some after all.
  void say_none_left(int path, Round round);
  void say_some_left(int path, Round round);

  /// The path has ended on this rank.
  void leave(int path) { say_none_left(path, {.iteration = std::numeric_limits<int64_t>::max(), .number = 0}); }

  std::optional<Made> take_made(int path) { return take_first(path, &Path::made); }
  std::optional<Made> take_declined(int path) { return take_first(path, &Path::declined); }
  void fetch(int path, int64_t iteration, const Made& made);
  std::optional<Group> take_fetched(int path) { return take_first(path, &Path::fetched); }

  /// A rank that is lost since the last call: what it was given and this rank has not fetched, nobody has.
  std::optional<int> take_lost(int path) { return take_first(path, &Path::lost); }

  /// Something has come that was not taken.
  bool has_news(int path, Round round) const;

  void announce(const std::vector<int>& samplers, int path, const OwnerNews& news);
  void announce_end_behind(const std::vector<int>& samplers, int64_t last);

  /// That rank only samples, and is lost; it is there again.
  void lose(int rank);
  void take_back(int rank);

  // What others say, by mail.
  void be_asked(int from, const GroupMessage& question, ByteReader& rest);
  void hear_made(int from, const GroupMessage& group, ByteReader& rest);
  void hear_declined(int from, const GroupMessage& group, ByteReader& rest);

 private:
  using Kind = GroupMessage::Kind;
  struct Path {
    std::deque<Question> questions;
    std::deque<Made> made;
    std::deque<Made> declined;
    std::deque<Group> fetched;
    std::deque<int> lost;                           // ranks
    Round none_left{.iteration = -1, .number = 0};  // nor before it
    std::string announced;                          // last
  };

  template <class T>
  std::optional<T> take_first(int path, std::deque<T> Path::*queue) {
    const std::lock_guard lock(mutex_);
    std::deque<T>& waiting = path_of(path).*queue;
    if (waiting.empty()) return std::nullopt;
    T first = std::move(waiting.front());
    waiting.pop_front();
    return first;
  }
  void keep(int path, std::deque<Made> Path::*queue, Made made);
  Path& path_of(int path) { return paths_.at(static_cast<size_t>(path)); }
  const Path& path_of(int path) const { return paths_.at(static_cast<size_t>(path)); }

  GroupLinks& links_;
  mutable std::mutex mutex_;  // guards what follows
  std::vector<Path> paths_;
  std::set<int> lost_;  // ranks
};

}  // namespace sluice::engine
