#include "comm/parcels/wire.h"

#include <cstring>
#include <string_view>
#include <vector>

#include "base/crc32c.h"
#include "base/error.h"

namespace sluice::comm {
namespace {

constexpr size_t kInCache = size_t{64} << 10;  // is copied and then read again for its checksum
constexpr size_t kMostPieces = 32;             // that go out one by one

uint32_t added_checksum(std::span<const std::byte> bytes, uint32_t before) {
  return crc32c({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, before);
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

void MemoryWire::learn(const Message& grant, MessageSocket& socket) {
  if (grant.is_new_block) blocks_.try_emplace(grant.block, socket.take_descriptor(), grant.block_bytes);
}

uint32_t MemoryWire::put(const Message& grant, const std::shared_ptr<const Payload>& payload, ChunkRange range,
                         OutgoingMessage&) {
  const auto block = blocks_.find(grant.block);
  SLUICE_CHECK(block != blocks_.end() && grant.place + range.end <= block->second.bytes(),
               "a grant of a block that is not there");
  std::byte* const place = block->second.data() + grant.place + range.begin;
  const auto pieces = payload->pieces(range.begin, range.end);
  const auto known = payload->known_checksum(range.begin / ChunkRange::kBytes);
  if (!known) return copy_pieces(pieces, place);
  copy_only(pieces, place);
  return *known;
}

uint32_t StreamWire::put(const Message&, const std::shared_ptr<const Payload>& payload, ChunkRange range,
                         OutgoingMessage& chunk) {
  chunk.message.body_bytes = range.size();
  chunk.body = payload->pieces(range.begin, range.end);
  chunk.keeps = payload;
  if (const auto known = payload->known_checksum(range.begin / ChunkRange::kBytes)) return *known;
  if (chunk.body.size() > kMostPieces) {
    const auto together = std::make_shared<std::vector<std::byte>>(range.size());
    const uint32_t checksum = copy_pieces(chunk.body, together->data());
    chunk.body = {*together};
    chunk.keeps = together;
    return checksum;
  }
  uint32_t checksum = 0;
  for (const auto& piece : chunk.body) checksum = added_checksum(piece, checksum);
  return checksum;
}

}  // namespace sluice::comm
