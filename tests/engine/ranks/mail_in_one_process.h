#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <vector>

#include "engine/ranks/mail.h"

namespace sluice::engine::testing {

/// The mail of several ranks in one process: a thread a rank, which takes messages of the senders in an order that is random and
/// pauses at random before it hands one on. Thread-safe.
///
/// What goes wrong in a handler is kept, and that rank's mail is over.
class MailInOneProcess {
 public:
  /// `pause_us`: the longest pause.
  MailInOneProcess(int size, uint64_t seed, int64_t pause_us);

  /// Closes all.
  ~MailInOneProcess();

  Mail& rank(int index);

  /// That rank is lost: nothing comes to it or from it any more. From any thread.
  void lose(int rank) { lost_.at(static_cast<size_t>(rank)) = true; }

  /// It is there again, as another incarnation, with mail of its own. Returns which: 1 at the first time.
  int64_t take_back(int rank);

  /// Closes the mail of every rank.
  void close();

  /// What went wrong.
  std::vector<std::exception_ptr> failures() const;

 private:
  class Rank;

  void failed(std::exception_ptr error);
  Rank& current(int rank) const { return *ranks_[static_cast<size_t>(rank)].load(); }
  int64_t incarnation(int rank) const { return incarnations_[static_cast<size_t>(rank)]; }

  const uint64_t seed_;
  const int64_t pause_us_;
  std::vector<std::atomic<bool>> lost_;             // by rank
  std::vector<std::atomic<int64_t>> incarnations_;  // likewise
  std::vector<std::atomic<Rank*>> ranks_;           // likewise
  mutable std::mutex mutex_;                        // guards failures_
  std::vector<std::exception_ptr> failures_;
  std::vector<std::unique_ptr<Rank>> all_ranks_;  // also those of before; last: their threads use the rest
};

}  // namespace sluice::engine::testing
