#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "comm/parcels/block_pool.h"
#include "comm/parcels/chunk.h"
#include "comm/parcels/message_socket.h"
#include "comm/parcels/payload.h"
#include "comm/parcels/wire.h"
#include "engine/ranks/parcels.h"

namespace sluice::comm {

/// The parcels that this rank has granted to one other rank, and what of them has come. Every chunk is compared with its
/// checksum.
///
/// Uses the socket, the wire and the pool, which outlive it. Belongs to the thread of the parcels. Failure: UserError that names
/// the chunk which is damaged, with `sends_again` at the second time, or the parcel that there is no memory for; InternalError
/// for what was not granted.
class Incoming {
 public:
  Incoming(int other, MessageSocket& socket, Wire& wire, BlockPool& pool, const DamageOptions& options)
      : other_(other), socket_(socket), wire_(wire), pool_(pool), options_(options) {}

  void grant(engine::ParcelKey key, int64_t most_bytes, engine::Parcels::Arrived arrived);
  void grant(engine::ParcelKey key, LandingPlace place, Landed landed);

  /// Memory that the other rank lends under this key, once it has.
  void borrow(engine::ParcelKey key, Borrowed borrowed);

  /// Where the bytes of this chunk go.
  std::span<std::byte> place_of(const Message& chunk);

  /// What has come from the other rank.
  void take_head(const Message& head);
  void take_chunk(const Message& chunk);
  void take_lent(const Message& lent);

  /// A parcel that has not come, for messages; null: none.
  const engine::ParcelKey* unfinished() const;

  /// Forgets all of it.
  void clear();

  /// Likewise, where the other rank is lost: it may only have been stopped, and write when it goes on.
  void give_up() {
    for (const auto& [number, granted] : granted_) pool_.retire(*granted.place.block);
    clear();
  }

  /// What has come, in all. From any thread.
  int64_t bytes() const { return bytes_; }

 private:
  struct Granted {
    engine::ParcelKey key;
    LandingPlace place;
    engine::Parcels::Arrived arrived;  // or
    Landed landed;
    std::optional<ParcelForm> form;
    size_t came = 0;                  // bytes that are as they were sent
    std::set<uint32_t> asked_again;   // damaged ones
    std::vector<uint32_t> checksums;  // of chunks
  };

  std::shared_ptr<Block> block_for(const engine::ParcelKey& key, size_t bytes);
  void grant(Granted granted);
  Granted& granted_of(const Message& message);
  bool is_sound(Granted& granted, const Message& message, std::span<std::byte> bytes, std::optional<uint32_t> taken = {});
  void finish_if_whole(uint64_t grant, Granted& granted);

  const int other_;
  MessageSocket& socket_;
  Wire& wire_;
  BlockPool& pool_;
  const DamageOptions& options_;
  uint64_t next_grant_ = 0;
  std::map<uint64_t, Granted> granted_;
  std::map<engine::ParcelKey, Borrowed> to_borrow_;              // not lent yet
  std::map<engine::ParcelKey, std::shared_ptr<Block>> to_lend_;  // nobody has asked for it yet
  std::atomic<int64_t> bytes_ = 0;
};

}  // namespace sluice::comm
