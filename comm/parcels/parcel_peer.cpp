#include "comm/parcels/parcel_peer.h"

#include <chrono>
#include <utility>

#include "base/error.h"
#include "base/text/strings.h"
#include "comm/parcels/parcel_rank_lost.h"

namespace sluice::comm {
namespace {

std::unique_ptr<Wire> wire_to(int peer, bool is_local) {
  if (is_local) return std::make_unique<MemoryWire>(peer);
  return std::make_unique<StreamWire>();
}

}  // namespace

ParcelPeer::ParcelPeer(int number, int rank, int64_t incarnation, PeerSocket socket, const PeerSurroundings& around)
    : number_(number),
      rank_(rank),
      incarnation_(incarnation),
      around_(around),
      wire_(wire_to(number, socket.is_local)),
      socket_(std::make_unique<MessageSocket>(std::move(socket.socket), rank)),
      outgoing_(around.own_rank, rank, *socket_, *wire_),
      incoming_(rank, *socket_, *wire_, around.pool, around.options) {}

engine::ParcelTraffic ParcelPeer::traffic() const {
  engine::ParcelTraffic traffic{.bytes_received = incoming_.bytes()};
  outgoing_.add_to(traffic);
  return traffic;
}

pollfd ParcelPeer::polled() const {
  const int events = (socket_->is_open() ? POLLIN : 0) | (socket_->has_unsent() ? POLLOUT : 0);
  return {.fd = socket_->descriptor(), .events = static_cast<short>(events), .revents = 0};
}

bool ParcelPeer::advance() {
  if (outgoing_.has_next() && !socket_->has_unsent()) outgoing_.send_next();
  socket_->write();
  return outgoing_.has_next() && !socket_->has_unsent();
}

void ParcelPeer::read() {
  socket_->read(*this);
  if (around_.has_ended) return;  // what was read is dropped, a goodbye too: nobody fails by its lack any more
  if (socket_->is_behind() || is_lost_) return;
  if (!socket_->is_open() && !has_ended_well_) return be_lost<ParcelRankClosed>(" has closed its connection");
  expect_there();
  if (has_ended_well_) socket_->close();  // it waits for that
}

void ParcelPeer::look_for_a_stall(double limit_seconds, StallWatch::Clock::time_point now) {
  const MessageSocket::Sent sent = socket_->sent();
  const double still = std::chrono::duration<double>(watch_.look(sent.got_there, sent.has_left && !has_left(), now)).count();
  const engine::ParcelKey* const key = unfinished();
  if (still < limit_seconds || key == nullptr) return;
  throw UserError("rank " + std::to_string(rank_) + " has taken nothing for " + fixed(still, 0) + " s, and " +
                      engine::text_of(*key) + " is between it and this rank",
                  "look at the link between the two machines");
}

void ParcelPeer::lend(engine::ParcelKey key, const std::shared_ptr<Block>& block) {
  socket_->push({.message = {.kind = Message::Kind::kLent, .block_bytes = block->memory.bytes(), .key = std::move(key)},
                 .descriptor = block->memory.descriptor(),
                 .body = {},
                 .keeps = block});
}

void ParcelPeer::forget(uint32_t block) { socket_->push({.message = {.kind = Message::Kind::kForget, .block = block}}); }

void ParcelPeer::forget_parcels() {
  outgoing_.clear();
  incoming_.clear();
}

bool ParcelPeer::begin_to_leave(bool is_early) {
  const bool is_through = is_early || (outgoing_.is_sent() && incoming_.unfinished() == nullptr);
  if (is_through && socket_->is_open()) socket_->begin_to_leave({.kind = Message::Kind::kGoodbye, .ends_early = is_early});
  if (!is_through) socket_->close();
  return is_through && socket_->is_open();
}

void ParcelPeer::give_up() {
  is_lost_ = true;
  outgoing_.clear();
  incoming_.give_up();
  socket_->close();
}

void ParcelPeer::expect_there() {
  if (has_left()) return forget_parcels();
  if (has_ended_well_ && unfinished() != nullptr) be_lost<ParcelRankLost>(" has ended");
}

void ParcelPeer::close() {
  forget_parcels();
  socket_->close();
}

std::span<std::byte> ParcelPeer::place_of(const Message& message) {
  SLUICE_CHECK(message.kind == Message::Kind::kChunk, "bytes after a message that has none");
  return incoming_.place_of(message);
}

void ParcelPeer::take(const Message& message) {
  if (around_.has_ended) return;
  switch (message.kind) {
    case Message::Kind::kGrant:
      return outgoing_.granted(message);
    case Message::Kind::kHead:
      return incoming_.take_head(message);
    case Message::Kind::kChunk:
      return incoming_.take_chunk(message);
    case Message::Kind::kAgain:
      return outgoing_.asked_again(message);
    case Message::Kind::kTaken:
      return outgoing_.taken(message);
    case Message::Kind::kForget:
      return wire_->forget(message.block);
    case Message::Kind::kLent:
      return incoming_.take_lent(message);
    case Message::Kind::kGoodbye:
      has_ended_well_ = true;
      ends_early_ = message.ends_early;
  }
}

const engine::ParcelKey* ParcelPeer::unfinished() const {
  const engine::ParcelKey* const key = incoming_.unfinished();
  return key != nullptr ? key : outgoing_.unfinished();
}

template <class Error>
void ParcelPeer::be_lost(const std::string& how) {
  if (!around_.expendable.ranks.has(rank_)) throw_lost<Error>(how);
  give_up();
  around_.expendable.lost(rank_, incarnation_);
}

template <class Error>
void ParcelPeer::throw_lost(const std::string& how) const {
  const engine::ParcelKey* const key = unfinished();
  const std::string what = key == nullptr ? "" : ", and " + engine::text_of(*key) + " was between it and this rank";
  throw Error("rank " + std::to_string(rank_) + how + what, "look at what rank " + std::to_string(rank_) + " said last");
}

}  // namespace sluice::comm
