#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "base/numbers/bytes.h"
#include "base/numbers/crc32c.h"
#include "comm/parcels/byte_parcel.h"
#include "comm/weights/arrival_rate.h"
#include "comm/weights/block_landing.h"
#include "engine/contract/world/publication.h"
#include "engine/ranks/parcels.h"

namespace sluice::comm {

/// What an owner tells of a version that all receivers have acknowledged. A plain value.
struct Confirmation {
  uint32_t slowest = 0;  // receiver
  double seconds = 0, slowest_seconds = 0;

  static Confirmation of(const engine::Parcel& word) {
    ByteReader bytes(word.header);
    Confirmation confirmation{.slowest = bytes.number<uint32_t>()};
    confirmation.seconds = bytes.real_number();
    confirmation.slowest_seconds = bytes.real_number();
    return confirmation;
  }
  std::string word() const {
    ByteWriter bytes;
    bytes.number(slowest);
    bytes.number(seconds);
    bytes.number(slowest_seconds);
    return bytes.take();
  }
};

/// One version on its way, as one rank sees it. Belongs to its publication, with the lock.
struct VersionOnItsWay {
  using Clock = std::chrono::steady_clock;

  const Clock::time_point begin = Clock::now();
  std::shared_ptr<BlockLanding> named;           // by this rank; null: not yet
  std::set<int> not_free;                        // sharers of the landing that have not named theirs
  std::set<uint32_t> places;                     // that the others have: all the same
  std::shared_ptr<BlockLanding> landing;         // null: until all have
  std::set<size_t> offered;                      // where ranges of this rank begin
  std::map<size_t, ByteParcel> to_copy;          // by piece: of this rank, which receives it too
  std::vector<std::vector<uint32_t>> checksums;  // by piece, of its chunks; empty while it is not here
  size_t missing = 0;                            // pieces that this rank brings in
  std::set<int> not_shared;                      // sharers that have not brought in all of theirs
  bool has_landed = false;
  ArrivalRate arrivals;                      // of pieces
  bool acknowledged = false;                 // by this rank
  std::map<int, uint32_t> acknowledgements;  // by receiver: its checksum; of owners
  std::optional<Confirmation> confirmation;  // by this owner
  std::set<int> unheard;                     // ranks that have not heard so
  int slowest = 0;                           // receiver so far
  double first_offer = 0;                    // seconds(): of an owner
  double first_acknowledgement = 0;          // likewise, that it has heard of
  size_t confirmations = 0;                  // of owners
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
