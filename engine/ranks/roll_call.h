#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "engine/contract/world/world.h"
#include "engine/ranks/mail.h"

namespace sluice::engine {

/// What ranks that only sample tell rank 0 after each iteration: what they have measured of themselves, and what their rollouts
/// have recorded that belongs to no group. Nothing that must repeat exactly is among it: rank 0 waits for those that are there,
/// and goes on without those that are lost.
///
/// Ownership: messages may come when the run is over, so they hold this, which forgets the run. Threads: all calls from any;
/// `done` is called without a lock, by the caller or on the thread of the mail. Failure: a message that is not one of these
/// throws InternalError to the mail.
class RollCall : public std::enable_shared_from_this<RollCall> {
 public:
  /// Of an iteration, of all ranks that have told of it.
  struct Told {
    Contribution own;                         // what they have measured
    std::map<int, Contribution> of_rollouts;  // by node
    std::vector<std::string> texts;
  };
  using Done = std::function<void(const Told&)>;

  /// `samplers`: the ranks that tell; `begun`: iterations that were complete before the run.
  RollCall(Mail& mail, const std::vector<int>& samplers, int64_t begun);

  /// Once, before anything else, on all ranks. `interrupted`: a rank was that only samples; of rank 0.
  void listen(std::function<void()> interrupted);

  /// Of a rank that only samples, each iteration once.
  void tell(int64_t iteration, const Contribution& own, const std::map<int, Contribution>& of_rollouts, const std::string& text);
  void tell_of_interrupt();

  /// Of rank 0: once all that are there have told of it. `is_last`: nobody asks for that iteration again.
  void when_told(int64_t iteration, bool is_last, Done done);

  /// It only samples, and is lost; it is there again, and tells from that iteration on.
  void lose(int rank);
  void join(int rank, int64_t iteration);

  /// What waits is called with nothing, now and later: the run has failed, or only what belongs to iterations after that one,
  /// the last that is finished.
  void abandon() { abandon_behind(-1); }
  void abandon_behind(int64_t last);

  /// The run is over.
  void forget();

 private:
  struct Entry {
    Told told;
    std::vector<int> ranks;  // that have told
    std::vector<Done> waiting;
    bool is_last = false;  // no others will wait
  };
  struct Ready {
    Told told;
    std::vector<Done> waiting;
  };

  void hear(int from, const std::string& message);
  void take(int from, int64_t iteration, Told told);
  bool is_complete(int64_t iteration, const Entry& entry) const;
  std::vector<Ready> take_complete();
  static void call(std::vector<Ready> ready);

  Mail& mail_;
  std::mutex mutex_;                 // guards what follows
  std::map<int, int64_t> expected_;  // ranks that are there: from which iteration on they tell
  std::map<int64_t, Entry> entries_;
  int64_t last_ = std::numeric_limits<int64_t>::max();  // iterations after it are abandoned
  std::function<void()> interrupted_;
  bool over_ = false;
};

}  // namespace sluice::engine
