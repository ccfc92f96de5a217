#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "engine/ranks/mail.h"

namespace sluice::engine {

/// A process that takes the place of a rank that was lost. A plain value.
struct ReturningRank {
  int rank = 0;
  int64_t incarnation = 0;  // of the processes that were this rank, one after the other
};

/// Ranks that only sample and come back into a run that goes on, as rank 0 knows them: those that have loaded their models and
/// wait to be let in.
///
/// Ownership: messages may come when the run is over, so they hold this. Threads: all calls from any. Failure: a message that is
/// not one of these throws InternalError to the mail.
class ReturningRanks : public std::enable_shared_from_this<ReturningRanks> {
 public:
  explicit ReturningRanks(Mail& mail) : mail_(mail) {}

  /// Once, before anything else.
  void listen();

  /// Those that wait, by rank.
  std::vector<ReturningRank> waiting() const;

  /// It is told which version of the weights is the first that it gets; or, with nothing, that the run ends before.
  void answer(int rank, std::optional<int64_t> first_version);

  /// The process that was this rank is lost. What is known of a later one stays: it may have come before that was heard.
  void lose(int rank, int64_t incarnation);

  /// The run is over: so is told who waits, and who comes later.
  void end();

 private:
  void hear(int from, const std::string& message);

  Mail& mail_;
  mutable std::mutex mutex_;        // guards what follows
  std::map<int, int64_t> waiting_;  // by rank: which incarnation
  bool over_ = false;
};

/// Of such a rank: tells rank 0 that it has loaded its models. `answered` is called with what ReturningRanks::answer() tells, on
/// the thread of the mail.
void ask_to_come_in(Mail& mail, int64_t incarnation, std::function<void(std::optional<int64_t> first_version)> answered);

}  // namespace sluice::engine
