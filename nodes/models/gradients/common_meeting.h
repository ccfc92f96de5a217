#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "engine/contract/world/common_memory.h"

namespace sluice::nodes {

/// Where ranks that have memory in common wait for each other, however often: a counter in that memory. Of one purpose, so that a
/// rank which has several threads never meets another one for something else. One thread at a time.
class CommonMeeting {
 public:
  /// `memory` outlives this. Waits for: the other ranks to ask for this one.
  CommonMeeting(const std::string& name, engine::CommonMemory& memory);

  /// Waits for: all ranks to call it as often. Ends when: they have, the run is over, or this has given up (UserError). Each sees
  /// afterwards what the others have written before.
  void wait();

  /// Nobody waits here any more. From any thread.
  void give_up() { has_given_up_.store(true, std::memory_order_relaxed); }

 private:
  const engine::CommonMemory& memory_;
  const std::shared_ptr<std::byte> counter_;
  int64_t meetings_ = 0;
  std::atomic<bool> has_given_up_ = false;
};

}  // namespace sluice::nodes
