#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "comm/parcels/block_pool.h"

namespace sluice::comm {

/// CRC-32C of chunks, by their number.
using ChunkChecksums = std::map<uint32_t, uint32_t>;

/// Bytes that go as a parcel of their own, as they are. A handle: nobody changes them until they are there.
struct ByteParcel {
  std::shared_ptr<const std::byte> bytes;
  size_t size = 0;  // above 0

  /// CRC-32C of its chunks, by the rank that had the bytes first. Who hands them on sends these along, so that each receiver
  /// compares with what was there at the beginning. Empty: they are taken on the way out.
  std::vector<uint32_t> checksums;

  /// The block of these parcels that they lie in, if they do: a rank of this host fetches them there.
  std::shared_ptr<Block> block = {};

  /// Where they are not known: what was taken on the way to one rank, for the way to others. Of the thread of the parcels.
  std::shared_ptr<ChunkChecksums> taken = {};
};

/// Where the bytes of a parcel come to: a stretch of a block that the receiver has made.
struct LandingPlace {
  std::shared_ptr<Block> block;
  size_t begin = 0;
  size_t size = 0;

  std::byte* data() const { return block->memory.data() + begin; }
};

/// Memory of another rank, which this one has from now on, too.
using Borrowed = std::function<void(std::shared_ptr<Block> block)>;

/// What has come to its place, with the checksums of its chunks.
using Landed = std::function<void(ByteParcel parcel)>;

}  // namespace sluice::comm
