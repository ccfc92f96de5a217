#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "comm/parcels/message_socket.h"
#include "comm/parcels/payload.h"
#include "comm/parcels/wire.h"
#include "engine/ranks/parcels.h"

namespace sluice::comm {

/// The parcels that this rank has for one other rank: those that wait for their grant, those that are on their way, and grants of
/// parcels that are not there yet.
///
/// Uses the socket and the wire, which outlive it. Belongs to the thread of the parcels. Failure: InternalError for a key that
/// comes twice and for a parcel that is larger than its grant.
class Outgoing {
 public:
  Outgoing(int rank, int other, MessageSocket& socket, Wire& wire) : rank_(rank), other_(other), socket_(socket), wire_(wire) {}

  void offer(engine::ParcelKey key, engine::Parcel parcel, std::function<void()> done);
  void offer(engine::ParcelKey key, ByteParcel parcel, std::function<void()> done);

  /// What has come from the other rank.
  void granted(const Message& grant);
  void asked_again(const Message& message);
  void taken(const Message& message);

  /// Whether send_next() has anything to do.
  bool has_next() const { return !under_way_.empty() || !again_.empty(); }

  /// One chunk.
  void send_next();

  /// All that was offered has been sent, whether word has come back or not.
  bool is_sent() const { return offers_.empty() && !has_next(); }

  /// A parcel that is not at its end, for messages; null: none.
  const engine::ParcelKey* unfinished() const;

  /// Forgets all of it.
  void clear();

  /// What of the traffic is of this direction. From any thread.
  void add_to(engine::ParcelTraffic& traffic) const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Offer {
    std::shared_ptr<const Payload> payload;
    int64_t credit_bytes = 0;
    std::function<void()> done;
  };
  struct Sent {
    Message grant;
    Offer offer;
    bool has_head = false;    // on its way
    uint32_t next_chunk = 0;  // of those on their way
  };

  void offer(engine::ParcelKey key, Offer offer);
  void begin(const Message& grant, Offer offer);
  void send_head(const Sent& sent);
  void send_chunk(const Sent& sent, uint32_t chunk);
  Sent& sent_of(const Message& message);
  void note_wait();

  const int rank_, other_;
  MessageSocket& socket_;
  Wire& wire_;
  std::map<engine::ParcelKey, Offer> offers_;    // without a grant
  std::map<engine::ParcelKey, Message> grants_;  // without an offer
  std::map<uint64_t, Sent> sent_;                // by grant: not yet taken
  std::set<uint64_t> under_way_;                 // of these, with chunks to send: in the order of their grants
  std::deque<Message> again_;                    // asked for
  std::atomic<int64_t> bytes_ = 0, chunks_again_ = 0;
  std::atomic<Clock::duration> waited_{};         // for credit, but for the wait that lasts
  std::atomic<Clock::time_point> waits_since_{};  // nothing: it does not wait
};

}  // namespace sluice::comm
