#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "engine/schedule/state/packet.h"

namespace sluice::engine {

/// Puts the packets of a node aside while one of them waits for other ranks, so that no thread blocks. One a node. Thread-safe.
///
/// Failure: nothing here fails or waits by itself. Where the other ranks never come, the packets stay aside until the run ends;
/// the watchdog of the run reports that iteration() does not move.
class RankWait {
 public:
  /// A packet is about to be handled, and may have to wait. False: another one waits, after which it is put aside.
  bool enter(const Packet& packet) {
    const std::lock_guard lock(mutex_);
    if (current_ && current_->sequence != packet.sequence) {
      aside_.push_back(packet);
      return false;
    }
    current_ = packet;
    return true;
  }

  /// The one that waits.
  Packet current() const {
    const std::lock_guard lock(mutex_);
    return *current_;
  }

  /// It is done: those that were put aside after it.
  std::vector<Packet> leave() {
    const std::lock_guard lock(mutex_);
    current_.reset();
    return std::exchange(aside_, {});
  }

  /// The iteration of the packet that waits, or is worked on; -1: none.
  int64_t iteration() const {
    const std::lock_guard lock(mutex_);
    return current_ ? current_->iteration.index : -1;
  }

 private:
  mutable std::mutex mutex_;
  std::optional<Packet> current_;
  std::vector<Packet> aside_;
};

}  // namespace sluice::engine
