#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>

#include "engine/ranks/rank_sign.h"

namespace sluice::cli {

/// What becomes of a run on several ranks, as this process learns it: that others have failed, or are lost, or go on without it.
/// The run is told, once it has begun. Before that, while ranks connect and load, whoever waits for other ranks is, and the
/// process ends some seconds later if nothing else ends it.
///
/// Belongs to Ranks. Threads: all calls from any. What it calls must be quick, and neither throw nor ask this.
class RunFate {
 public:
  RunFate() = default;
  RunFate(const RunFate&) = delete;
  RunFate& operator=(const RunFate&) = delete;

  struct Terms {
    std::chrono::duration<double> time_to_notice{};    // that a rank is lost
    int expendable = 0;                                // ranks that may be lost
    std::function<void(const std::string& why)> warn;  // this rank fails, which the others learn before it has ended
  };

  /// Once, before it learns of anything.
  void begin(Terms terms) { terms_ = std::move(terms); }

  /// `failed` gets what becomes known of a failure of other ranks, from now on or before, at most once; `sign` is what this rank
  /// shows of itself, once a second. Both are called on some thread; after the run is over neither is.
  struct OfRun {
    std::function<void(const std::exception_ptr&)> failed;
    std::function<engine::RankSign()> sign;
    std::function<void(int rank, const std::string& why)> lost;  // one without which the run goes on; likewise, once each
    std::function<void(int rank, int64_t incarnation)> back;     // another process is that rank; likewise
  };
  void watch(OfRun run);

  /// Nobody is told anything any more. False: it was so already.
  bool end();

  engine::RankSign sign();

  // What it learns.

  /// Other ranks have failed, or the connection with all of them.
  void fail(std::exception_ptr error);

  /// Something is wrong with what two ranks exchange. A connection that broke the heartbeat knows better; what came damaged
  /// nobody does, so the others hear of it before this rank has ended what it is at.
  void hear_of(std::exception_ptr error);

  /// Likewise, of which the heartbeat knows better in any case.
  void suspect(std::exception_ptr error);

  /// That rank is lost, without which the run goes on; another process has taken its place. False: this rank has ended.
  void lose(int rank, const std::string& why);
  bool take_back(int rank, int64_t incarnation);

  /// Rank 0 has ended. A rank that is in ends by itself.
  void be_late();

  // What others ask of it.

  /// `lost` is told of all ranks that are lost, also of those that were before.
  void tell_of_losses(std::function<void(int rank)> lost);

  /// Other ranks have failed, or what is between them and this one.
  bool others_failed() const;

  /// The other ranks go on without this one. After the failure that says so.
  bool was_given_up() const { return was_given_up_; }

  /// A rank is lost or has failed: who waits for all to connect gives up.
  std::stop_token give_up() const { return give_up_.get_token(); }

  /// Something is wrong with another rank. Waits for: the heartbeat to say who is lost, which this throws. Ends when: it has, or
  /// it would have.
  void throw_what_is_noticed();

  /// Of this process, which has taken the place of a rank that was lost: the others do not count on it yet. It is late
  /// where rank 0 has ended meanwhile.
  void begin_to_come_back();
  bool is_in() const;  // they count on it

  /// Rank 0 answers from which version of the weights on it takes part; nothing: the run ends before.
  void let_in(std::optional<int64_t> first_version);

  /// Waits for: that answer. Ends when: it is there, or other ranks have failed, whose failure this throws. Throws CameTooLate
  /// where the run ends before.
  int64_t await_entry();

  /// What somebody waits for has come: `note` notes it, under the lock under which await() looks.
  template <class Note>
  void note(const Note& note) {
    const std::lock_guard lock(mutex_);
    note();
    changed_.notify_all();
  }

  /// Waits for: something, as soon as `look` finds it. Ends when: it is there, or other ranks have failed, whose failure this
  /// throws.
  template <class Look>
  auto await(const Look& look) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return look().has_value() || failure_; });
    if (failure_) std::rethrow_exception(failure_);
    return *look();
  }

 private:
  struct Lost {
    std::string why;
    int64_t incarnation = 0;  // of the process that has taken its place; 0: none
  };

  void fail_soon(std::exception_ptr error);
  void fail_too_late();
  void leave_soon();

  Terms terms_;
  std::atomic<bool> was_given_up_ = false;
  std::stop_source give_up_;
  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable_any changed_;
  bool ended_ = false;
  std::exception_ptr failure_;
  std::map<int, Lost> lost_ranks_;  // without which the run goes on
  std::function<void(int rank)> lost_;
  bool is_in_ = true;
  bool run_has_ended_ = false;                    // rank 0 has said goodbye
  std::optional<std::optional<int64_t>> answer_;  // of rank 0, whether this rank may come in
  OfRun run_;
  std::jthread suspicion_, leaving_;  // last: they use the rest
};

}  // namespace sluice::cli
