#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "comm/parcels/byte_parcel.h"
#include "comm/weights/arrival_rate.h"
#include "comm/weights/block_landing.h"
#include "engine/contract/publication.h"

namespace sluice::comm {

/// One version on its way, as one rank sees it. Belongs to its publication, with the lock.
struct VersionOnItsWay {
  using Clock = std::chrono::steady_clock;

  const Clock::time_point begin = Clock::now();
  std::shared_ptr<BlockLanding> landing;         // null: not said yet
  std::set<size_t> offered;                      // where ranges of this rank begin
  std::map<size_t, ByteParcel> to_copy;          // by piece: of this rank, which receives it too
  std::vector<std::vector<uint32_t>> checksums;  // by piece, of its chunks; empty while it is not here
  size_t missing = 0;                            // pieces
  ArrivalRate arrivals;                          // of pieces
  bool acknowledged = false;                     // by this rank
  std::map<int, uint32_t> acknowledgements;      // by receiver: its checksum; of owners
  double first_offer = 0;                        // seconds(): of an owner
  double first_acknowledgement = 0;              // likewise, that it has heard of
  size_t confirmations = 0;                      // of owners
  engine::PublishedVersion told;

  /// Since this rank had to do with it first.
  double seconds() const { return std::chrono::duration<double>(Clock::now() - begin).count(); }

  /// Of all of it, in the order of pieces, which all are here.
  uint32_t checksum() const {
    ByteWriter all;
    for (const auto& piece : checksums)
      for (const uint32_t checksum : piece) all.number(checksum);
    return crc32c(all.take());
  }
};

}  // namespace sluice::comm
