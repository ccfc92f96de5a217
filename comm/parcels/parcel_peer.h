#pragma once

#include <poll.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "comm/parcels/block_pool.h"
#include "comm/parcels/chunk.h"
#include "comm/parcels/expendable_ranks.h"
#include "comm/parcels/incoming.h"
#include "comm/parcels/message_socket.h"
#include "comm/parcels/outgoing.h"
#include "comm/parcels/peer_sockets.h"
#include "comm/parcels/stall_watch.h"
#include "comm/parcels/wire.h"
#include "engine/ranks/parcels.h"

namespace sluice::comm {

/// What all peers of a rank have in common; it outlives them.
struct PeerSurroundings {
  int own_rank = 0;
  BlockPool& pool;
  const DamageOptions& options;
  const ExpendableRanks& expendable;
  const std::atomic<bool>& has_ended;           // nothing more is taken
  const std::atomic<bool>& expects_early_ends;  // others may leave with something between the two
};

/// One other rank, or a process that is it: what goes to it and what comes from it, over its connection.
///
/// Ownership: DirectParcels owns it. Threads: that of the parcels alone, but for traffic(). Failure: what cannot go on is thrown:
/// ParcelRankClosed, ParcelRankLost, or what Outgoing and Incoming throw; a rank that may be lost is told of instead.
class ParcelPeer final : public MessageTaker {
 public:
  /// `number`: which no other one has. `around` is copied; what it refers to outlives this.
  ParcelPeer(int number, int rank, int64_t incarnation, PeerSocket socket, const PeerSurroundings& around);

  int number() const { return number_; }
  Outgoing& outgoing() { return outgoing_; }
  Incoming& incoming() { return incoming_; }
  const MessageSocket& socket() const { return *socket_; }
  engine::ParcelTraffic traffic() const;

  /// What is to be waited for.
  pollfd polled() const;

  /// Sends what can go. Returns whether there is more to do at once.
  bool advance();

  /// Takes what has come.
  void read();

  /// Throws UserError where what is for the other rank has not got on for so long.
  void look_for_a_stall(double limit_seconds, StallWatch::Clock::time_point now);

  void lend(engine::ParcelKey key, const std::shared_ptr<Block>& block);
  void forget(uint32_t block);
  void forget_parcels();

  /// The first step of a goodbye; leave() makes the next ones, until it returns true. Where something is left between the two
  /// there is none, and the connection is closed; false then. Early: there always is one, but to a rank that has left itself.
  bool begin_to_leave(bool is_early);
  bool leave() { return socket_->leave(); }

  /// It has ended, and nobody fails by what it cannot give or get any more.
  bool has_left() const { return is_lost_ || (has_ended_well_ && (ends_early_ || around_.expects_early_ends)); }

  /// It is lost, and the others go on.
  void give_up();

  /// Else it has ended, and cannot give or get what it still should: then it is lost.
  void expect_there();

  void close();

  std::span<std::byte> place_of(const Message& message) override;
  void take(const Message& message) override;

 private:
  const engine::ParcelKey* unfinished() const;
  template <class Error>
  void be_lost(const std::string& how);
  template <class Error>
  [[noreturn]] void throw_lost(const std::string& how) const;

  const int number_, rank_;
  const int64_t incarnation_;
  const PeerSurroundings around_;
  const std::unique_ptr<Wire> wire_;
  const std::unique_ptr<MessageSocket> socket_;
  Outgoing outgoing_;
  Incoming incoming_;
  StallWatch watch_;
  bool has_ended_well_ = false;
  bool ends_early_ = false;  // as it has said
  bool is_lost_ = false;     // and the others go on
};

}  // namespace sluice::comm
