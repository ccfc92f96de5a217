#pragma once

#include <cstdint>
#include <map>
#include <memory>

#include "comm/parcels/block_pool.h"
#include "comm/parcels/chunk.h"
#include "comm/parcels/message_socket.h"
#include "comm/parcels/payload.h"
#include "comm/parcels/shared_memory.h"

namespace sluice::comm {

/// How the bytes of chunks get from where their sender has them into the block of their receiver. Everything else about parcels
/// is the same for all wires. One for each other rank; belongs to the thread of the parcels.
class Wire {
 public:
  virtual ~Wire() = default;

  /// Receiver: the other rank gets what it needs to reach the block, beside the grant.
  virtual void show(const std::shared_ptr<Block>& block, OutgoingMessage& grant) = 0;

  /// A message has come that may speak of a block, or word that one is no more.
  virtual void learn(const Message& message, MessageSocket& socket) = 0;
  virtual void forget(uint32_t block) = 0;

  /// Sender: brings this chunk to its place in the block of the grant, and returns its checksum, which it takes where that is not
  /// known. What is left to do is done by sending `chunk`.
  virtual uint32_t put(const Message& grant, const std::shared_ptr<const Payload>& payload, ChunkRange range,
                       OutgoingMessage& chunk) = 0;

  /// Receiver: brings a chunk that is to be fetched to its place, and returns its checksum.
  virtual uint32_t fetch(const Message& chunk, std::span<std::byte> place) = 0;
};

/// Between processes of one host. The sender has the blocks of the receiver mapped and writes there. Where its bytes lie in a
/// block of its own it only says so, and the receiver copies them: several that get the same bytes do so at the same time, and
/// each takes the checksum while it copies.
class MemoryWire final : public Wire {
 public:
  explicit MemoryWire(int other) : other_(other) {}

  void show(const std::shared_ptr<Block>& block, OutgoingMessage& grant) override;
  void learn(const Message& grant, MessageSocket& socket) override;
  void forget(uint32_t block) override { blocks_.erase(block); }
  uint32_t put(const Message& grant, const std::shared_ptr<const Payload>& payload, ChunkRange range,
               OutgoingMessage& chunk) override;
  uint32_t fetch(const Message& chunk, std::span<std::byte> place) override;

 private:
  std::byte* place_in(uint32_t block, size_t begin, size_t size) const;

  const int other_;
  std::map<uint32_t, SharedMemory> blocks_;  // of the other rank
};

/// Between hosts: the bytes go over the connection, after the message that announces them. What consists of many pieces is put
/// together first, in memory of one chunk.
class StreamWire final : public Wire {
 public:
  void show(const std::shared_ptr<Block>&, OutgoingMessage&) override {}
  void learn(const Message&, MessageSocket&) override {}
  void forget(uint32_t) override {}
  uint32_t put(const Message& grant, const std::shared_ptr<const Payload>& payload, ChunkRange range,
               OutgoingMessage& chunk) override;
  uint32_t fetch(const Message& chunk, std::span<std::byte> place) override;
};

}  // namespace sluice::comm
