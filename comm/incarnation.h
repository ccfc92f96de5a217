#pragma once

#include <cstdint>
#include <string>

#include "comm/store_connection.h"

namespace sluice::comm {

/// One process of the run.
struct Member {
  std::string host;
  int64_t pid = 0;
};

/// One of the processes that are a rank of a run, one after the other: what one of them writes is never taken for what another
/// one has written. The first is 0, and each has a higher number than those before. A plain value.
struct Incarnation {
  int64_t number = 0;
  Member member;
};

/// For the store. incarnation_from() throws InternalError on what bytes_of() does not write.
std::string bytes_of(const Incarnation& incarnation);
Incarnation incarnation_from(const std::string& bytes);

/// Keys of the store. Of each incarnation: its last beat, and how it was lost; empty: it was not. Of a rank: the last that has
/// come back; empty: none.
std::string beat_key(int rank, int64_t incarnation);
std::string gone_key(int rank, int64_t incarnation);
std::string back_key(int rank);

/// A process that is to be a rank of a run that goes on, and was another process before.
class Return {
 public:
  /// Waits for: the process before to be lost. Ends when: it is; or it is `until`, or that process beats: UserError then.
  Return(StoreConnection& store, int rank, Member member, Clock::time_point until);

  const Incarnation& mine() const { return mine_; }

  /// The other ranks are told. Throws UserError where they were told of another process meanwhile.
  void announce(StoreConnection& store) const;

 private:
  const int rank_;
  std::string last_;  // what was written of the one before
  Incarnation mine_;
};

}  // namespace sluice::comm
