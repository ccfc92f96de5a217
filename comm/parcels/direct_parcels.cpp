#include "comm/parcels/direct_parcels.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <string>

#include "base/error.h"
#include "base/strings.h"
#include "comm/parcels/incoming.h"
#include "comm/parcels/message_socket.h"
#include "comm/parcels/outgoing.h"
#include "comm/parcels/parcel_rank_lost.h"
#include "comm/parcels/wire.h"

namespace sluice::comm {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kLookMs = static_cast<int>(StallWatch::kLook.count());
constexpr std::chrono::seconds kToLeave{5};  // for other ranks to hear a goodbye: all that are not stopped do at once

bool is_rank_closed(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const ParcelRankClosed&) {
    return true;
  } catch (...) {
    return false;
  }
}

std::unique_ptr<Wire> wire_to(int peer, bool is_local) {
  if (is_local) return std::make_unique<MemoryWire>(peer);
  return std::make_unique<StreamWire>();
}

void add(engine::ParcelTraffic& all, const engine::ParcelTraffic& one) {
  all.bytes_sent += one.bytes_sent;
  all.bytes_received += one.bytes_received;
  all.chunks_sent_again += one.chunks_sent_again;
  all.credit_wait_seconds += one.credit_wait_seconds;
}

}  // namespace

// One other rank, or a process that is it: what goes to it and what comes from it.
class DirectParcels::Peer final : public MessageTaker {
 public:
  /// `number`: which no other one has. `has_ended`: nothing more is taken. `expects_early_ends`: it may leave with something
  /// between the two.
  Peer(int number, int own, int rank, int64_t incarnation, PeerSocket socket, BlockPool& pool, const DamageOptions& options,
       const std::atomic<bool>& has_ended, const std::atomic<bool>& expects_early_ends, const ExpendableRanks& expendable)
      : number_(number),
        rank_(rank),
        incarnation_(incarnation),
        expendable_(expendable),
        has_ended_(has_ended),
        expects_early_ends_(expects_early_ends),
        options_(options),
        wire_(wire_to(number, socket.is_local)),
        socket_(std::make_unique<MessageSocket>(std::move(socket.socket), rank)),
        outgoing_(own, rank, *socket_, *wire_),
        incoming_(rank, *socket_, *wire_, pool, options_) {}

  int number() const { return number_; }
  Outgoing& outgoing() { return outgoing_; }
  Incoming& incoming() { return incoming_; }
  const MessageSocket& socket() const { return *socket_; }

  engine::ParcelTraffic traffic() const {
    engine::ParcelTraffic traffic{.bytes_received = incoming_.bytes()};
    outgoing_.add_to(traffic);
    return traffic;
  }

  // What is to be waited for.
  pollfd polled() const {
    const int events = (socket_->is_open() ? POLLIN : 0) | (socket_->has_unsent() ? POLLOUT : 0);
    return {.fd = socket_->descriptor(), .events = static_cast<short>(events), .revents = 0};
  }

  // Returns whether there is more to do at once.
  bool advance() {
    if (outgoing_.has_next() && !socket_->has_unsent()) outgoing_.send_next();
    socket_->write();
    return outgoing_.has_next() && !socket_->has_unsent();
  }

  // Fails where what is for the other rank has not got on for so long.
  void look_for_a_stall(double limit_seconds, Clock::time_point now) {
    const MessageSocket::Sent sent = socket_->sent();
    const double still = std::chrono::duration<double>(watch_.look(sent.got_there, sent.has_left && !has_left(), now)).count();
    const engine::ParcelKey* const key = unfinished();
    if (still < limit_seconds || key == nullptr) return;
    throw UserError("rank " + std::to_string(rank_) + " has taken nothing for " + fixed(still, 0) + " s, and " +
                        engine::text_of(*key) + " is between it and this rank",
                    "look at the link between the two machines");
  }

  void forget_parcels() {
    outgoing_.clear();
    incoming_.clear();
  }

  void lend(engine::ParcelKey key, const std::shared_ptr<Block>& block) {
    socket_->push({.message = {.kind = Message::Kind::kLent, .block_bytes = block->memory.bytes(), .key = std::move(key)},
                   .descriptor = block->memory.descriptor(),
                   .body = {},
                   .keeps = block});
  }

  void forget(uint32_t block) { socket_->push({.message = {.kind = Message::Kind::kForget, .block = block}}); }

  void read() {
    socket_->read(*this);
    if (has_ended_) return;  // what was read is dropped, a goodbye too: nobody fails by its lack any more
    if (socket_->is_behind() || is_lost_) return;
    if (!socket_->is_open() && !has_ended_well_) return be_lost<ParcelRankClosed>(" has closed its connection");
    expect_there();
    if (has_ended_well_) socket_->close();  // it waits for that
  }

  // The first step of a goodbye; the next ones, until it returns true. Where something is left between the two there is none, and
  // the connection is closed; false then. Early: there always is one, but to a rank that has left itself.
  bool begin_to_leave(bool is_early) {
    const bool is_through = is_early || (outgoing_.is_sent() && incoming_.unfinished() == nullptr);
    if (is_through && socket_->is_open()) socket_->begin_to_leave({.kind = Message::Kind::kGoodbye, .ends_early = is_early});
    if (!is_through) socket_->close();
    return is_through && socket_->is_open();
  }
  bool leave() { return socket_->leave(); }

  // It has ended, and nobody fails by what it cannot give or get any more.
  bool has_left() const { return is_lost_ || (has_ended_well_ && (ends_early_ || expects_early_ends_)); }

  void give_up() {
    is_lost_ = true;
    outgoing_.clear();
    incoming_.give_up();
    socket_->close();
  }

  // Else it has ended, and cannot give or get what it still should.
  void expect_there() {
    if (has_left()) return forget_parcels();
    if (has_ended_well_ && unfinished() != nullptr) be_lost<ParcelRankLost>(" has ended");
  }

  void close() {
    forget_parcels();
    socket_->close();
  }

  std::span<std::byte> place_of(const Message& message) override {
    SLUICE_CHECK(message.kind == Message::Kind::kChunk, "bytes behind a message that has none");
    return incoming_.place_of(message);
  }

  void take(const Message& message) override {
    if (has_ended_) return;
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

 private:
  const engine::ParcelKey* unfinished() const {
    const engine::ParcelKey* const key = incoming_.unfinished();
    return key != nullptr ? key : outgoing_.unfinished();
  }

  template <class Error>
  void be_lost(const std::string& how) {
    if (!expendable_.ranks.has(rank_)) throw_lost<Error>(how);
    give_up();
    expendable_.lost(rank_, incarnation_);
  }

  template <class Error>
  [[noreturn]] void throw_lost(const std::string& how) const {
    const engine::ParcelKey* const key = unfinished();
    const std::string what = key == nullptr ? "" : ", and " + engine::text_of(*key) + " was between it and this rank";
    throw Error("rank " + std::to_string(rank_) + how + what, "look at what rank " + std::to_string(rank_) + " said last");
  }

  const int number_, rank_;
  const int64_t incarnation_;
  const ExpendableRanks& expendable_;
  const std::atomic<bool>&has_ended_, &expects_early_ends_;
  const DamageOptions options_;
  const std::unique_ptr<Wire> wire_;
  const std::unique_ptr<MessageSocket> socket_;
  Outgoing outgoing_;
  Incoming incoming_;
  StallWatch watch_;
  bool has_ended_well_ = false;
  bool ends_early_ = false;  // as it has said
  bool is_lost_ = false;     // and the others go on
};

DirectParcels::DirectParcels(engine::World world, std::vector<PeerSocket> peers, Failed failed, DamageOptions options,
                             ExpendableRanks expendable, double stalled_seconds)
    : world_(world),
      failed_(std::move(failed)),
      expendable_(std::move(expendable)),
      stalled_seconds_(stalled_seconds),
      options_(options),
      wakes_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      of_lost_(static_cast<size_t>(world.size)) {
  SLUICE_CHECK(wakes_, "the system has no more descriptors");
  for (int rank = 0; rank < world.size; ++rank) {
    auto& socket = peers.at(static_cast<size_t>(rank));
    hosts_.push_back(socket.host);
    peers_.push_back(socket.socket ? new_peer(rank, 0, std::move(socket)) : nullptr);
  }
  thread_ = std::jthread([this] { carry_out(); });
}

DirectParcels::~DirectParcels() { close(); }

std::unique_ptr<DirectParcels::Peer> DirectParcels::new_peer(int rank, int64_t incarnation, PeerSocket socket) {
  return std::make_unique<Peer>(next_peer_++, world_.rank, rank, incarnation, std::move(socket), pool_, options_, has_ended_,
                                expects_early_ends_, expendable_);
}

void DirectParcels::close() {
  end(Ending::kWell);
  if (thread_.joinable()) thread_.join();
}

void DirectParcels::abandon() { end(Ending::kAbandoned); }

void DirectParcels::end(Ending ending) {
  {
    const std::lock_guard lock(mutex_);
    if (ending_ == Ending::kNot) ending_ = ending;
    has_ended_ = true;
  }
  wake();
}

void DirectParcels::wake() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(wakes_.number(), &one, sizeof one);  // it fails only where it is awake anyway
}

void DirectParcels::check_other(int rank) const {
  SLUICE_CHECK(0 <= rank && rank < world_.size && rank != world_.rank, "a parcel between a rank and none, or itself");
}

void DirectParcels::send(int to, engine::ParcelKey key, engine::Parcel parcel, std::function<void()> done) {
  SLUICE_CHECK(parcel.header.size() <= engine::Parcel::kMostHeader, "a header that is too long");
  command(to, [key = std::move(key), parcel = std::move(parcel), done = std::move(done)](Peer& peer) mutable {
    peer.outgoing().offer(std::move(key), std::move(parcel), std::move(done));
  });
}

void DirectParcels::receive(int from, engine::ParcelKey key, int64_t most_bytes, Arrived arrived) {
  SLUICE_CHECK(arrived != nullptr, "a parcel that nobody takes");
  command(from, [key = std::move(key), most_bytes, arrived = std::move(arrived)](Peer& peer) mutable {
    peer.incoming().grant(std::move(key), most_bytes, std::move(arrived));
  });
}

void DirectParcels::send_bytes(int to, engine::ParcelKey key, ByteParcel parcel, std::function<void()> done) {
  SLUICE_CHECK(parcel.size > 0, "a parcel of no bytes");
  command(to, [key = std::move(key), parcel = std::move(parcel), done = std::move(done)](Peer& peer) mutable {
    peer.outgoing().offer(std::move(key), std::move(parcel), std::move(done));
  });
}

void DirectParcels::receive_bytes(int from, engine::ParcelKey key, LandingPlace place, Landed landed) {
  SLUICE_CHECK(landed != nullptr, "a parcel that nobody takes");
  command(from, [key = std::move(key), place = std::move(place), landed = std::move(landed)](Peer& peer) mutable {
    peer.incoming().grant(std::move(key), std::move(place), std::move(landed));
  });
}

void DirectParcels::lend(int to, engine::ParcelKey key, std::shared_ptr<Block> block) {
  command(to, [key = std::move(key), block = std::move(block)](Peer& peer) mutable { peer.lend(std::move(key), block); });
}

void DirectParcels::borrow(int from, engine::ParcelKey key, Borrowed borrowed) {
  SLUICE_CHECK(borrowed != nullptr, "memory that nobody takes");
  command(from, [key = std::move(key), borrowed = std::move(borrowed)](Peer& peer) mutable {
    peer.incoming().borrow(std::move(key), std::move(borrowed));
  });
}

void DirectParcels::lose(int rank) {
  check_other(rank);
  post([this, rank] {
    if (Peer* const other = peers_[static_cast<size_t>(rank)].get()) other->give_up();
  });
}

// Commands that come later find the new process; those before were for the one that is lost.
void DirectParcels::take_back(int rank, int64_t incarnation) {
  check_other(rank);
  const auto socket = std::make_shared<PeerSocket>(expendable_.connect(rank, incarnation));
  if (!socket->socket) return expendable_.lost(rank, incarnation);
  post([this, rank, incarnation, socket] { replace(rank, incarnation, std::move(*socket)); });
}

void DirectParcels::replace(int rank, int64_t incarnation, PeerSocket socket) {
  std::unique_ptr<Peer> other = new_peer(rank, incarnation, std::move(socket));
  const auto index = static_cast<size_t>(rank);
  const std::lock_guard lock(peers_mutex_);
  peers_[index].swap(other);
  if (!other) return;
  add(of_lost_[index], other->traffic());
}

void DirectParcels::command(int rank, std::function<void(Peer&)> what) {
  check_other(rank);
  post([this, rank, what = std::move(what)] {
    Peer* const other = peers_[static_cast<size_t>(rank)].get();
    if (other == nullptr || other->has_left()) return;
    what(*other);
    other->expect_there();
  });
}

void DirectParcels::post(std::function<void()> what) {
  {
    const std::lock_guard lock(mutex_);
    if (has_ended_) return;
    commands_.push_back(std::move(what));
    if (commands_.size() > 1) return;  // the thread is awake, or will be
  }
  wake();
}

std::vector<engine::ParcelTraffic> DirectParcels::traffic() const {
  const std::lock_guard lock(peers_mutex_);
  std::vector<engine::ParcelTraffic> traffic = of_lost_;
  for (size_t rank = 0; rank < peers_.size(); ++rank) {
    if (!peers_[rank]) continue;
    add(traffic[rank], peers_[rank]->traffic());
  }
  return traffic;
}

void DirectParcels::carry_out() {
  try {
    while (turn()) {
    }
    leave();
  } catch (...) {
    fail(std::current_exception());
  }
}

// Returns whether there is another one.
bool DirectParcels::turn() {
  if (!carry_out_commands()) return false;
  tell_of_gone_blocks();
  bool has_more = false;
  for (const auto& peer : peers_) has_more |= peer && peer->advance();
  look_for_stalls();
  wait(has_more);
  return true;
}

void DirectParcels::look_for_stalls() {
  const auto now = Clock::now();
  if (now - looked_ < StallWatch::kLook) return;
  looked_ = now;
  for (const auto& peer : peers_)
    if (peer) peer->look_for_a_stall(stalled_seconds_, now);
}

bool DirectParcels::carry_out_commands() {
  std::deque<std::function<void()>> commands;
  {
    const std::lock_guard lock(mutex_);
    if (has_ended_) return false;
    commands.swap(commands_);
  }
  for (const auto& what : commands) what();
  return true;
}

void DirectParcels::tell_of_gone_blocks() {
  for (const auto& [block, known_to] : pool_.take_gone())
    for (const auto& peer : peers_)
      if (peer && known_to.contains(peer->number()) && !peer->has_left()) peer->forget(block);
}

// Waits for: another rank that says something or can take more, or a call. Ends when: there is one, when it is time to look for
// stalls, or at once where there is more to do.
void DirectParcels::wait(bool has_more) {
  std::vector<pollfd> polled{{.fd = wakes_.number(), .events = POLLIN, .revents = 0}};
  std::vector<Peer*> polled_peers{nullptr};
  for (const auto& peer : peers_) {
    if (!peer || !(peer->socket().is_open() || peer->socket().is_behind())) continue;
    has_more |= peer->socket().is_behind();
    polled.push_back(peer->polled());
    polled_peers.push_back(peer.get());
  }
  const int ready = ::poll(polled.data(), polled.size(), has_more ? 0 : kLookMs);
  SLUICE_CHECK(ready >= 0 || errno == EINTR, "connections of other ranks cannot be waited for");
  uint64_t count = 0;
  if (ready > 0 && polled[0].revents != 0 && ::read(wakes_.number(), &count, sizeof count) < 0)
    SLUICE_CHECK(errno == EAGAIN, "an eventfd fails");
  for (size_t i = 1; i < polled.size(); ++i)
    if (polled_peers[i]->socket().is_behind() || (ready > 0 && (polled[i].revents & ~POLLOUT) != 0)) polled_peers[i]->read();
}

// Waits for: the other ranks to hear that this one leaves. Ends when: they have, or it took too long; then a rank that hears
// nothing fails.
void DirectParcels::leave() {
  std::deque<std::function<void()>> dropped;
  Ending ending;
  {
    const std::lock_guard lock(mutex_);
    ending = ending_;
    dropped.swap(commands_);
  }
  const bool is_early = expects_early_ends_;
  if (ending == Ending::kAbandoned || (!is_early && !dropped.empty())) return leave_without_goodbye();
  std::vector<Peer*> left_to_tell;
  for (const auto& peer : peers_) {
    if (!peer || !peer->begin_to_leave(is_early)) continue;
    left_to_tell.push_back(peer.get());
  }
  for (const auto until = Clock::now() + kToLeave;;) {
    std::erase_if(left_to_tell, [](Peer* peer) { return peer->leave(); });
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now());
    if (left_to_tell.empty() || left.count() <= 0) break;
    std::vector<pollfd> polled;
    for (const Peer* peer : left_to_tell) polled.push_back(peer->polled());
    ::poll(polled.data(), polled.size(), static_cast<int>(left.count()));
  }
  leave_without_goodbye();
}

void DirectParcels::leave_without_goodbye() {
  for (const auto& peer : peers_)
    if (peer) peer->close();
}

void DirectParcels::fail(std::exception_ptr reason) {
  bool is_told = false;
  {
    const std::lock_guard lock(mutex_);
    is_told = !has_ended_.exchange(true);  // else it was given up
    if (is_told) ending_ = Ending::kAbandoned;
  }
  // Where another rank is gone the connections stay until this is destroyed: the others notice that by themselves, and this rank
  // is still there, which may be one that they would go on without.
  if (is_told && is_rank_closed(reason)) {
    for (const auto& peer : peers_)
      if (peer) peer->forget_parcels();
  } else {
    leave_without_goodbye();
  }
  if (is_told) failed_(std::move(reason));
}

}  // namespace sluice::comm
