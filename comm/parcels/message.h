#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "engine/ranks/parcels.h"

namespace sluice::comm {

/// What two ranks tell each other about their parcels, on the connection that they have. A plain value.
struct Message {
  enum class Kind : uint8_t {
    kGrant,    // by the receiver: key, bytes at most, block, block_bytes, place; is_new_block has its descriptor beside it
    kHead,     // by the sender: text, the form of the parcel (comm/parcels/payload.h), checksum
    kChunk,    // by the sender: chunk, bytes, checksum; body_bytes after it where the bytes go over the connection; is_to_fetch
               // from block, block_bytes, place, is_new_block of the sender
    kAgain,    // by the receiver: chunk was damaged, and is to come once more
    kTaken,    // by the receiver: all of the parcel is there
    kForget,   // by whose it was: block is no more
    kLent,     // by whose it is: key, block_bytes, and beside it the descriptor of a block that the other rank shall have too
    kGoodbye,  // the rank has ended well; ends_early: with whatever was between the two, as all ranks do
  };
  static constexpr uint32_t kHeadAsChunk = UINT32_MAX;

  Kind kind = Kind::kGoodbye;
  uint64_t grant = 0;  // which the message is about, counted by the receiver of parcels
  uint32_t chunk = 0;
  uint32_t checksum = 0;
  uint64_t bytes = 0;
  uint64_t body_bytes = 0;
  uint32_t block = 0;
  uint64_t block_bytes = 0;
  uint64_t place = 0;  // in the block
  bool is_new_block = false;
  bool is_to_fetch = false;
  bool ends_early = false;
  engine::ParcelKey key;
  std::string text;

  /// With a length and a checksum in front.
  std::string to_bytes() const;

  /// Of what is after the length and the checksum. Throws InternalError on what to_bytes() does not write.
  static Message from_bytes(std::string_view bytes);
};

/// What is in front of the bytes of a message. Of a fixed size.
struct MessagePrefix {
  static constexpr size_t kBytes = 8;
  static constexpr uint32_t kLongestMessage = uint32_t{64} << 20;

  uint32_t length = 0;
  uint32_t checksum = 0;

  static MessagePrefix from_bytes(std::string_view bytes);
};

}  // namespace sluice::comm
