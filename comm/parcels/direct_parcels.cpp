#include "comm/parcels/direct_parcels.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>

#include "base/error.h"
#include "comm/parcels/parcel_rank_lost.h"

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

void add(engine::ParcelTraffic& all, const engine::ParcelTraffic& one) {
  all.bytes_sent += one.bytes_sent;
  all.bytes_received += one.bytes_received;
  all.chunks_sent_again += one.chunks_sent_again;
  all.credit_wait_seconds += one.credit_wait_seconds;
}

}  // namespace

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

std::unique_ptr<ParcelPeer> DirectParcels::new_peer(int rank, int64_t incarnation, PeerSocket socket) {
  const PeerSurroundings around{.own_rank = world_.rank,
                                .pool = pool_,
                                .options = options_,
                                .expendable = expendable_,
                                .has_ended = has_ended_,
                                .expects_early_ends = expects_early_ends_};
  return std::make_unique<ParcelPeer>(next_peer_++, rank, incarnation, std::move(socket), around);
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
  command(to, [key = std::move(key), parcel = std::move(parcel), done = std::move(done)](ParcelPeer& peer) mutable {
    peer.outgoing().offer(std::move(key), std::move(parcel), std::move(done));
  });
}

void DirectParcels::receive(int from, engine::ParcelKey key, int64_t most_bytes, Arrived arrived) {
  SLUICE_CHECK(arrived != nullptr, "a parcel that nobody takes");
  command(from, [key = std::move(key), most_bytes, arrived = std::move(arrived)](ParcelPeer& peer) mutable {
    peer.incoming().grant(std::move(key), most_bytes, std::move(arrived));
  });
}

void DirectParcels::send_bytes(int to, engine::ParcelKey key, ByteParcel parcel, std::function<void()> done) {
  SLUICE_CHECK(parcel.size > 0, "a parcel of no bytes");
  command(to, [key = std::move(key), parcel = std::move(parcel), done = std::move(done)](ParcelPeer& peer) mutable {
    peer.outgoing().offer(std::move(key), std::move(parcel), std::move(done));
  });
}

void DirectParcels::receive_bytes(int from, engine::ParcelKey key, LandingPlace place, Landed landed) {
  SLUICE_CHECK(landed != nullptr, "a parcel that nobody takes");
  command(from, [key = std::move(key), place = std::move(place), landed = std::move(landed)](ParcelPeer& peer) mutable {
    peer.incoming().grant(std::move(key), std::move(place), std::move(landed));
  });
}

void DirectParcels::lend(int to, engine::ParcelKey key, std::shared_ptr<Block> block) {
  command(to, [key = std::move(key), block = std::move(block)](ParcelPeer& peer) mutable { peer.lend(std::move(key), block); });
}

void DirectParcels::borrow(int from, engine::ParcelKey key, Borrowed borrowed) {
  SLUICE_CHECK(borrowed != nullptr, "memory that nobody takes");
  command(from, [key = std::move(key), borrowed = std::move(borrowed)](ParcelPeer& peer) mutable {
    peer.incoming().borrow(std::move(key), std::move(borrowed));
  });
}

void DirectParcels::lose(int rank) {
  check_other(rank);
  post([this, rank] {
    if (ParcelPeer* const other = peers_[static_cast<size_t>(rank)].get()) other->give_up();
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
  std::unique_ptr<ParcelPeer> other = new_peer(rank, incarnation, std::move(socket));
  const auto index = static_cast<size_t>(rank);
  const std::lock_guard lock(peers_mutex_);
  peers_[index].swap(other);
  if (!other) return;
  add(of_lost_[index], other->traffic());
}

void DirectParcels::command(int rank, std::function<void(ParcelPeer&)> what) {
  check_other(rank);
  post([this, rank, what = std::move(what)] {
    ParcelPeer* const other = peers_[static_cast<size_t>(rank)].get();
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
  std::vector<ParcelPeer*> polled_peers{nullptr};
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
  std::vector<ParcelPeer*> left_to_tell;
  for (const auto& peer : peers_) {
    if (!peer || !peer->begin_to_leave(is_early)) continue;
    left_to_tell.push_back(peer.get());
  }
  for (const auto until = Clock::now() + kToLeave;;) {
    std::erase_if(left_to_tell, [](ParcelPeer* peer) { return peer->leave(); });
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now());
    if (left_to_tell.empty() || left.count() <= 0) break;
    std::vector<pollfd> polled;
    for (const ParcelPeer* peer : left_to_tell) polled.push_back(peer->polled());
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
