#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>

#include "engine/contract/model.h"
#include "engine/schedule/state/work_in_progress.h"

namespace sluice::engine {

/// Versions of weights that other ranks are to send to this one. The run goes on until they are there, so that it does not leave
/// ranks that are still sending; but for those that will never come.
///
/// Ownership: what tells that a version is there may come when the run is over, so it holds this, which forgets the run.
/// Thread-safe; what is to be done is done under the lock, on the thread that tells.
class ComingVersions : public std::enable_shared_from_this<ComingVersions> {
 public:
  /// `pending` outlives forget().
  explicit ComingVersions(WorkInProgress& pending) : pending_(&pending) {}

  /// What is to be called when the version is there, or cannot be had, once; it does `arrived` unless nobody waits any more.
  VersionReceived expect(int64_t version, VersionReceived arrived);

  /// The iteration is the last that all ranks finish: versions after the one that it leaves do not come. Or none does.
  void drop_behind(int64_t last);
  void abandon() { drop_behind(-1); }

  /// The run is over. Waits for: what is being done.
  void forget();

 private:
  void arrive(int64_t number, const ReceivedVersion& received);

  std::mutex mutex_;  // guards what follows
  WorkInProgress* pending_;
  struct Coming {
    int64_t version;
    VersionReceived arrived;
  };
  std::map<int64_t, Coming> coming_;  // by number
  int64_t next_ = 0;
  int64_t newest_ = std::numeric_limits<int64_t>::max();  // that comes
};

}  // namespace sluice::engine
