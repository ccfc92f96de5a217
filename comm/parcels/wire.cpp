#include "comm/parcels/wire.h"

#include <cstring>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/numbers/crc32c.h"

namespace sluice::comm {
namespace {

constexpr size_t kInCache = size_t{64} << 10;  // is copied and then read again for its checksum
constexpr size_t kMostPieces = 32;             // that go out one by one

uint32_t added_checksum(std::span<const std::byte> bytes, uint32_t before) {
  return crc32c({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, before);
}

uint32_t checksum_of(const std::vector<std::span<const std::byte>>& pieces) {
  uint32_t checksum = 0;
  for (const auto& piece : pieces) checksum = added_checksum(piece, checksum);
  return checksum;
}

// Returns their checksum, together with what came before.
uint32_t copy_and_add(std::span<const std::byte> from, std::byte* to, uint32_t before) {
  for (size_t begin = 0; begin < from.size(); begin += kInCache) {
    const auto part = from.subspan(begin, std::min(kInCache, from.size() - begin));
    std::memcpy(to + begin, part.data(), part.size());
    before = added_checksum(part, before);
  }
  return before;
}

void copy_only(const std::vector<std::span<const std::byte>>& pieces, std::byte* to) {
  for (const auto& piece : pieces) {
    std::memcpy(to, piece.data(), piece.size());
    to += piece.size();
  }
}

uint32_t copy_pieces(const std::vector<std::span<const std::byte>>& pieces, std::byte* to) {
  uint32_t checksum = 0;
  for (const auto& piece : pieces) {
    checksum = copy_and_add(piece, to, checksum);
    to += piece.size();
  }
  return checksum;
}

}  // namespace

void MemoryWire::show(const std::shared_ptr<Block>& block, OutgoingMessage& grant) {
  grant.message.block = block->id;
  grant.message.block_bytes = block->memory.bytes();
  grant.message.is_new_block = block->known_to.insert(other_).second;
  if (!grant.message.is_new_block) return;
  grant.descriptor = block->memory.descriptor();
  grant.keeps = block;
}

void MemoryWire::learn(const Message& message, MessageSocket& socket) {
  if (message.is_new_block) blocks_.try_emplace(message.block, socket.take_descriptor(), message.block_bytes);
}

std::byte* MemoryWire::place_in(uint32_t block, size_t begin, size_t size) const {
  const auto found = blocks_.find(block);
  SLUICE_CHECK(found != blocks_.end() && begin + size <= found->second.bytes(), "word of a block that is not there");
  return found->second.data() + begin;
}

uint32_t MemoryWire::put(const Message& grant, const std::shared_ptr<const Payload>& payload, ChunkRange range,
                         OutgoingMessage& chunk) {
  const auto pieces = payload->pieces(range.begin, range.end);
  const auto known = payload->known_checksum(chunk.message.chunk);
  if (payload->block()) {
    show(payload->block(), chunk);
    chunk.message.is_to_fetch = true;
    chunk.message.place = payload->place() + range.begin;
    return known ? *known : checksum_of(pieces);
  }
  std::byte* const place = place_in(grant.block, grant.place + range.begin, range.size());
  if (!known) return copy_pieces(pieces, place);
  copy_only(pieces, place);
  return *known;
}

uint32_t MemoryWire::fetch(const Message& chunk, std::span<std::byte> place) {
  const std::byte* const from = place_in(chunk.block, chunk.place, place.size());
  return copy_crc32c({reinterpret_cast<const char*>(from), place.size()}, reinterpret_cast<char*>(place.data()));
}

uint32_t StreamWire::put(const Message&, const std::shared_ptr<const Payload>& payload, ChunkRange range,
                         OutgoingMessage& chunk) {
  chunk.message.body_bytes = range.size();
  chunk.body = payload->pieces(range.begin, range.end);
  chunk.keeps = payload;
  if (const auto known = payload->known_checksum(chunk.message.chunk)) return *known;
  if (chunk.body.size() > kMostPieces) {
    const auto together = std::make_shared<std::vector<std::byte>>(range.size());
    const uint32_t checksum = copy_pieces(chunk.body, together->data());
    chunk.body = {*together};
    chunk.keeps = together;
    return checksum;
  }
  return checksum_of(chunk.body);
}

uint32_t StreamWire::fetch(const Message&, std::span<std::byte>) { throw InternalError("nothing is fetched from another host"); }

}  // namespace sluice::comm
