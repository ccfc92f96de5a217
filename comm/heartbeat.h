#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/numbers/rank_range.h"
#include "comm/incarnation.h"
#include "comm/rank_loss.h"
#include "comm/store.h"
#include "engine/ranks/rank_sign.h"

namespace sluice::comm {

struct HeartbeatOptions {
  double beat_seconds = 1;
  double dead_after_seconds = 10;
  double first_beat_seconds = 60;             // for a rank that has joined and does not beat yet
  std::function<engine::RankSign()> sign;     // what this rank shows of itself; quick, on the thread of this
  std::function<void(const RankLoss&)> lost;  // called at most once, on the thread of this; must not throw, nor end this

  /// These may be lost, and the others go on. `gone` is called for each once, and `back` where another process takes its place;
  /// likewise.
  RankRange expendable = {};
  std::function<void(const RankLoss&)> gone = {};
  std::function<void(int rank, int64_t incarnation)> back = {};

  /// Called once, likewise: rank 0 has said goodbye, and this rank has not.
  std::function<void()> over = {};
};

/// Each rank shows the others that it is alive, and notices when another one is not.
///
/// Once a second a thread writes what the rank shows of itself to the store, and looks at what the others wrote. A rank whose
/// beat has not changed for dead_after_seconds of this rank's clock is lost. Time in which this rank was stopped, and watched
/// nobody, is left out. Rank 0 is lost when the store does not answer. A rank that fails says why, and one that ends says so.
/// The first loss is written to the store, and all ranks tell of that one.
///
/// Of ranks that may be lost each is a loss of its own, without which the others go on; so that all of them do, whoever notices
/// writes it to the store. A rank that was given up fails when it sees that. Another process may take its place: what the two
/// write is kept apart (comm/incarnation.h).
///
/// Lives shorter than the store. Threads: one ends it, not that of `lost`; seen() is thread-safe. Failure: `lost` is the way to
/// tell; the constructor throws StoreLost.
class Heartbeat {
 public:
  Heartbeat(const Store& store, HeartbeatOptions options);

  /// fail() where nothing has ended it.
  ~Heartbeat();

  /// Says goodbye; nobody watches this rank any more. On rank 0, without which there is no store:
  /// Waits for: the other ranks to end. Ends when: they have, or some seconds after one was lost.
  void end_well();

  /// Tells all ranks that this one has failed, and why. On rank 0:
  /// Waits for: the other ranks to end, which know of it within a second. Ends when: they have, or after some seconds.
  void fail(const std::string& why);

  /// Likewise, where this rank may be lost, and the others have nothing from it: they go on.
  void step_back(const std::string& why);

  /// This rank fails, and ends when it has left what it is at: the others learn why at once. From any thread.
  void warn(const std::string& why);

  /// That rank may be lost, and is: its connection is broken. From any thread.
  void give_up(int rank, int64_t incarnation);

  /// All ranks, with their last signs: this one's too.
  std::vector<engine::RankSeen> seen() const;

 private:
  enum class Ending { kNot, kWell, kFailed, kStepsBack };
  struct Peer {
    int64_t incarnation = 0;
    std::string beat;           // as it was written
    Clock::time_point changed;  // by this rank's clock
    bool ended = false;         // by itself, or it is lost
    bool gone = false;          // it is, and the others go on
    engine::RankSign sign;      // its last one
  };

  void end(Ending ending, const std::string& why);
  void beat_and_watch();
  Ending beat();
  void look();
  void leave_out_what_was_not_watched(Clock::time_point now);
  void give_up_what_was_lost();
  std::vector<std::string> keys() const;
  void keep_in_store(int rank);
  void take_place(int rank, const Incarnation& incarnation);
  void look_for_gone(const std::vector<std::string>& values);
  void look_for_the_end();
  Peer& own() { return peers_[static_cast<size_t>(world_.rank)]; }
  bool is_expendable(int rank) const { return options_.expendable.has(rank); }
  static void take_in(Peer& peer, const std::string& beat, Clock::time_point now);
  void show();
  void tell(const RankLoss& loss);
  RankLoss first_loss(const RankLoss& mine);
  RankLoss loss_of(int rank) const;
  void store_is_lost(const StoreLost& error);
  bool may_leave(Ending ending) const;
  void wait_for_next_beat(Ending ending);

  const engine::World world_;
  const HeartbeatOptions options_;
  const std::unique_ptr<StoreConnection> store_;  // of the thread, but for interrupt()

  // Of the thread:
  std::vector<Peer> peers_;   // by rank
  uint64_t count_ = 0;        // of beats
  Clock::time_point looked_;  // last
  bool told_ = false;
  bool told_of_end_ = false;
  bool has_failed_ = false;          // and has said so
  Clock::time_point trouble_since_;  // of told_ and has_failed_

  mutable std::mutex mutex_;  // guards what follows
  std::vector<Member> members_;
  std::vector<Peer> shown_;  // as the last look found them
  std::condition_variable changed_;
  Ending ending_ = Ending::kNot;
  std::string why_;
  std::string warning_;                              // empty: none
  std::vector<std::pair<int, int64_t>> to_give_up_;  // ranks whose connection is broken, and which incarnation it was
  bool ended_ = false;                               // the thread
  std::thread thread_;                               // last: it uses the rest
};

}  // namespace sluice::comm
