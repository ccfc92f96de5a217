#pragma once

#include <cstdint>
#include <string>

#include "comm/transfers.h"
#include "engine/contract/world/world.h"

namespace sluice::comm {

/// What a rank is about to do with all others, over the connections of one group. A value.
struct Announcement {
  enum class Operation : int32_t { kAllReduce, kReduceScatter, kAllGather, kExchange };

  Operation operation = Operation::kAllReduce;
  int64_t floats = 0;    // of the buffer
  uint32_t shares = 0;   // a checksum of who has what of it; 0: the rule says so
  int64_t sequence = 0;  // how many operations the group had before

  bool operator==(const Announcement&) const = default;
};

std::string text_of(const Announcement& announcement);

/// Tells the next rank of it, and hears from the one before: so operations never meet others than their own. Returns when both
/// are about to do the same. Throws InternalError that names what each was about to do, where it is not: all ranks carry out one
/// program, so that is a bug; and what Transfers throws.
void announce(engine::World world, Transfers& transfers, const Announcement& announcement);

}  // namespace sluice::comm
