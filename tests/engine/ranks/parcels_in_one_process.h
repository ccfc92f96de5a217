#pragma once

#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "engine/ranks/parcels.h"

namespace sluice::engine::testing {

/// The parcels of several ranks in one process: a thread a rank, which calls that rank's callbacks in an order that is random,
/// also among parcels of one sender, and pauses at random before each. Columns are not copied. Thread-safe.
///
/// The first thing that goes wrong is kept, and then all parcels are over: a key that comes twice between two ranks, a parcel
/// that is larger than its grant, a callback that throws, a rank that abandons its parcels. So is what is left between two ranks
/// when one of them closes, or comes later, unless one of them expects early ends: offers, grants, and parcels that have not
/// arrived.
class ParcelsInOneProcess {
 public:
  /// `pause_us`: the longest pause.
  ParcelsInOneProcess(int size, uint64_t seed, int64_t pause_us);

  /// Closes all.
  ~ParcelsInOneProcess();

  Parcels& rank(int index);

  /// That rank is lost: what is between it and others is dropped, now and later. From any thread.
  void lose(int rank);

  /// It is there again, as another process: nothing has been between it and others.
  void take_back(int rank);

  /// Closes the parcels of every rank. Not to be called by a callback.
  void close();

  /// What went wrong: nothing, or one thing.
  std::vector<std::exception_ptr> failures() const;

 private:
  class Rank;
  struct Between;  // one rank and another that it sends to

  void match(int from, int to, const ParcelKey& key);
  void fail(std::exception_ptr error);
  void look_for_what_is_left(int rank);
  bool expect_early_ends(int from, int to) const;
  bool has_left(int rank) const;
  bool is_lost(int rank) const { return lost_.contains(rank); }
  int64_t incarnation(int rank) const { return incarnations_.contains(rank) ? incarnations_.at(rank) : 0; }
  void tell_left(int from, int to, const ParcelKey& key, const std::string& how);
  std::vector<Between> take_between(int rank);

  mutable std::mutex mutex_;  // guards what follows, and what ranks have
  bool is_over_ = false;
  std::vector<std::exception_ptr> failures_;
  std::map<std::pair<int, int>, Between> between_;
  std::set<int> lost_;
  std::map<int, int64_t> incarnations_;       // of those that were; others: 0
  std::vector<std::unique_ptr<Rank>> ranks_;  // last: their threads use the rest
};

}  // namespace sluice::engine::testing
