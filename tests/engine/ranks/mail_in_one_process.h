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

  /// Closes the mail of every rank.
  void close();

  /// What went wrong.
  std::vector<std::exception_ptr> failures() const;

 private:
  class Rank;

  void failed(std::exception_ptr error);

  std::vector<std::atomic<bool>> lost_;  // by rank
  mutable std::mutex mutex_;             // guards failures_
  std::vector<std::exception_ptr> failures_;
  std::vector<std::unique_ptr<Rank>> ranks_;  // last: their threads use the rest
};

}  // namespace sluice::engine::testing
