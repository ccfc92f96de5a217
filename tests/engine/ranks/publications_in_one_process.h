#pragma once

#include <cstdint>
#include <memory>

#include "engine/contract/world/publication.h"

namespace sluice::engine::testing {

/// Versions of weights between several ranks in one process. One thread tells all ranks what has come, in an order that is
/// random, and pauses at random before each event. Thread-safe.
///
/// Throws InternalError for what is against the contract: a version that is offered or received twice or out of order, one that
/// is acknowledged before it has landed, a range that is not the rank's.
class PublicationsInOneProcess {
 public:
  /// `pause_us`: the longest pause.
  PublicationsInOneProcess(int size, uint64_t seed, int64_t pause_us);
  ~PublicationsInOneProcess();

  Publications& rank(int index);

  /// That receiver is lost: versions open without its word. From any thread.
  void lose(int rank);

 private:
  class Impl;
  const std::shared_ptr<Impl> impl_;
};

}  // namespace sluice::engine::testing
