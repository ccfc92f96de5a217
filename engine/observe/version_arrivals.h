#pragma once

#include <cstdint>
#include <map>
#include <mutex>

#include "engine/contract/world/metrics.h"
#include "engine/contract/world/publication.h"

namespace sluice::engine {

/// What the versions of weights took that a rank has received, as metrics of the iteration that samples with them. With several
/// models bytes are of all of them, and all else is of the one that took longest.
///
/// The rank stands still for a version while the version is on its way and nothing else is left to be sampled: not while it is
/// still being trained. Thread-safe.
class VersionArrivals {
 public:
  /// Nothing is left to be sampled before `version` is there.
  void await(int64_t version, int64_t now_ns);

  /// A version of a model can be sampled from.
  void opened(const PublishedVersion& version, int64_t now_ns);

  /// NaN is what this rank has not.
  struct Rows {
    MetricRow of_rank;  // measured by this rank, as engine/observe/over_ranks.h has it
    MetricRow of_run;   // the same on all ranks that have it
  };

  /// Forgets that version and all before it. On a rank that has not received it, the names alone.
  Rows take(int64_t version);

 private:
  struct Arrival {
    int64_t bytes = 0;
    int64_t stall_ns = 0;
    PublishedVersion slowest = {.published_seconds = -1};  // below 0: none yet
  };

  std::mutex mutex_;                       // guards what follows
  std::map<int64_t, int64_t> awaited_ns_;  // by version: since when
  std::map<int64_t, Arrival> arrivals_;    // by version
};

}  // namespace sluice::engine
