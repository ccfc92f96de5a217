#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "comm/parcels/message.h"
#include "engine/ranks/parcels.h"

namespace sluice::comm {

/// A part of the bytes of a parcel, which has a checksum of its own.
struct ChunkRange {
  static constexpr size_t kBytes = size_t{1} << 20;  // of all but the last

  size_t begin = 0;
  size_t end = 0;

  size_t size() const { return end - begin; }
  static size_t count(size_t parcel_bytes) { return (parcel_bytes + kBytes - 1) / kBytes; }
  static ChunkRange of(uint32_t chunk, size_t parcel_bytes) {
    const size_t begin = std::min(size_t{chunk} * kBytes, parcel_bytes);
    return {begin, std::min(begin + kBytes, parcel_bytes)};
  }
};

/// Which chunk of all that travel. A plain value.
struct ChunkName {
  int sender = 0;
  engine::ParcelKey key;
  uint32_t chunk = 0;  // or Message::kHeadAsChunk
};

/// Called for each chunk when its bytes have come, before they are compared with their checksum: what a wire may do to them, for
/// tests.
using OnTheWay = std::function<void(const ChunkName& name, std::span<std::byte> bytes)>;

struct DamageOptions {
  bool sends_again = false;  // a chunk that came damaged, once; else that fails at once
  OnTheWay on_the_way = {};  // on the thread of the parcels
};

}  // namespace sluice::comm
