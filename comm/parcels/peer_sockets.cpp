#include "comm/parcels/peer_sockets.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <random>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <utility>

#include "base/error.h"
#include "base/numbers/bytes.h"
#include "comm/sockets.h"
#include "comm/torch_reason.h"

namespace sluice::comm {
namespace {

constexpr size_t kWord = 32;  // letters that nobody guesses
constexpr size_t kHello = kWord + sizeof(uint32_t);
constexpr std::chrono::seconds kForAStranger{5};  // to say who he is

constexpr std::chrono::milliseconds kLooks{200};  // between two looks whether this has given up

// How others reach a rank.
struct PeerAddress {
  std::string host;  // in digits
  uint32_t port = 0;
  std::string unix_name;
  std::string word;
};

std::string random_word() {
  std::random_device random;
  std::string word;
  while (word.size() < kWord) word += "0123456789abcdef"[random() % 16];
  return word;
}

std::string bytes_of(const PeerAddress& address) {
  ByteWriter bytes;
  bytes.text(address.host);
  bytes.number(address.port);
  bytes.text(address.unix_name);
  bytes.text(address.word);
  return bytes.take();
}

PeerAddress address_of(std::string_view text) {
  ByteReader bytes(text);
  PeerAddress address;
  address.host = bytes.text();
  address.port = bytes.number<uint32_t>();
  address.unix_name = bytes.text();
  address.word = bytes.text();
  return address;
}

// A name in no folder, which is gone with the last socket that has it.
std::pair<sockaddr_un, socklen_t> unix_address(const std::string& name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const size_t size = std::min(name.size(), sizeof address.sun_path - 1);
  std::memcpy(address.sun_path + 1, name.data(), size);
  return {address, static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + size)};
}

Descriptor listen_at_name(const std::string& name) {
  Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const auto [address, size] = unix_address(name);
  const bool listens = socket && ::bind(socket.number(), reinterpret_cast<const sockaddr*>(&address), size) == 0 &&
                       ::listen(socket.number(), SOMAXCONN) == 0;
  SLUICE_CHECK(listens, "this process cannot listen at a name of its own");
  return socket;
}

bool is_of_this_user(const Descriptor& socket) {
  ucred other{};
  socklen_t size = sizeof other;
  return ::getsockopt(socket.number(), SOL_SOCKET, SO_PEERCRED, &other, &size) == 0 && other.uid == ::geteuid();
}

// No socket: nobody has that name on this host.
Descriptor connect_to_name(const std::string& name) {
  Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const auto [address, size] = unix_address(name);
  const bool is_there = socket && ::connect(socket.number(), reinterpret_cast<const sockaddr*>(&address), size) == 0;
  return is_there && is_of_this_user(socket) ? std::move(socket) : Descriptor();
}

std::string address_key(int rank, int64_t incarnation) {
  return "address/" + std::to_string(rank) + "/" + std::to_string(incarnation);
}

std::chrono::milliseconds left_until(Clock::time_point until) {
  return std::max(std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()), std::chrono::milliseconds(1));
}

// Small messages are not to wait for others.
void send_at_once(const Descriptor& socket) {
  const int on = 1;
  ::setsockopt(socket.number(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

// Over a Unix socket where the other rank has that name on this host.
PeerSocket socket_to(const PeerAddress& address, bool shares_memory, Clock::time_point until) {
  if (shares_memory && !address.unix_name.empty()) {
    PeerSocket peer{.socket = connect_to_name(address.unix_name), .is_local = true};
    if (peer.socket) return peer;
  }
  PeerSocket peer{.socket = connect_to(address.host, static_cast<int>(address.port), until).socket};
  if (peer.socket) send_at_once(peer.socket);
  return peer;
}

// No socket: it does not answer.
PeerSocket connect_as(int own, const PeerAddress& address, bool shares_memory, Clock::time_point until) {
  PeerSocket peer = socket_to(address, shares_memory, until);
  if (!peer.socket) return peer;
  ByteWriter hello;
  hello.raw(address.word);
  hello.number(static_cast<uint32_t>(own));
  ask(peer.socket, hello.take(), 0, until);
  return peer;
}

class Meeting {
 public:
  Meeting(c10d::Store& store, engine::World world, const PeerSocketOptions& options)
      : store_(store),
        world_(world),
        options_(options),
        until_(Clock::now() + options.to_connect),
        tcp_(listen_on(options.host, 0, false)),
        peers_(static_cast<size_t>(world.size)) {
    own_.host = tcp_.address;
    own_.port = static_cast<uint32_t>(own_port(tcp_.socket.number()));
    own_.word = random_word();
    if (!options.shares_memory) return;
    own_.unix_name = "sluice-" + random_word();
    unix_ = listen_at_name(own_.unix_name);
  }

  std::vector<PeerSocket> meet() {
    store_.set(address_key(world_.rank, 0), bytes_of(own_));
    for (int rank = 0; rank < world_.rank; ++rank) peer(rank) = connect(rank);
    accept(world_.rank + 1, world_.size);
    agree_on_hosts();
    return std::move(peers_);
  }

  std::vector<PeerSocket> come_back(int64_t incarnation, int others, const std::function<void()>& announce) {
    store_.set(address_key(world_.rank, incarnation), bytes_of(own_));
    announce();
    accept(0, others);
    return std::move(peers_);
  }

 private:
  static std::string host_key_of(int rank) { return "host/" + std::to_string(rank); }

  // Each rank knows with whom it shares memory itself, and tells the others the lowest one.
  void agree_on_hosts() {
    int lowest = 0;
    while (lowest != world_.rank && !peer(lowest).is_local) ++lowest;
    store_.set(host_key_of(world_.rank), std::to_string(lowest));
    for (int rank = 0; rank < world_.size; ++rank) peer(rank).host = rank == world_.rank ? lowest : host_of(rank);
  }

  int host_of(int rank) const {
    store_.wait({host_key_of(rank)}, left());
    const std::vector<uint8_t> bytes = store_.get(host_key_of(rank));
    return std::stoi(std::string(bytes.begin(), bytes.end()));
  }

  PeerSocket& peer(int rank) { return peers_.at(static_cast<size_t>(rank)); }

  std::chrono::milliseconds left() const { return left_until(until_); }

  PeerSocket connect(int rank) {
    store_.wait({address_key(rank, 0)}, left());
    const std::vector<uint8_t> bytes = store_.get(address_key(rank, 0));
    const PeerAddress address = address_of({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    PeerSocket socket = connect_as(world_.rank, address, options_.shares_memory, until_);
    if (!socket.socket) throw UserError("rank " + std::to_string(rank) + " does not answer at " + address.host);
    return socket;
  }

  void accept(int first, int last) {
    for (int missing = last - first; missing > 0;) missing -= accept_one(first, last) ? 1 : 0;
  }

  // Returns whether somebody has come who is one of the ranks that are missing.
  bool accept_one(int first, int last) {
    std::array<pollfd, 2> listeners{pollfd{.fd = tcp_.socket.number(), .events = POLLIN, .revents = 0},
                                    pollfd{.fd = unix_.number(), .events = POLLIN, .revents = 0}};
    ::poll(listeners.data(), listeners.size(), static_cast<int>(std::min(left(), kLooks).count()));
    for (const pollfd& listener : listeners) {
      if ((listener.revents & POLLIN) == 0) continue;
      const bool is_local = listener.fd == unix_.number();
      Descriptor socket(::accept4(listener.fd, nullptr, nullptr, SOCK_CLOEXEC));
      const int rank = socket && (!is_local || is_of_this_user(socket)) ? rank_of(socket) : -1;
      if (rank < first || rank >= last || peer(rank).socket) continue;
      if (!is_local) send_at_once(socket);
      peer(rank) = {.socket = std::move(socket), .is_local = is_local};
      return true;
    }
    if (Clock::now() >= until_ || options_.give_up.stop_requested()) throw UserError("not all have come");
    return false;
  }

  // Who this is; -1: a stranger.
  int rank_of(const Descriptor& socket) const {
    const std::string hello = ask(socket, {}, kHello, std::min<Clock::time_point>(until_, Clock::now() + kForAStranger));
    if (hello.size() != kHello || hello.substr(0, kWord) != own_.word) return -1;
    return static_cast<int>(ByteReader(std::string_view(hello).substr(kWord)).number<uint32_t>());
  }

  c10d::Store& store_;
  const engine::World world_;
  const PeerSocketOptions options_;
  const Clock::time_point until_;
  const Listener tcp_;
  Descriptor unix_;
  PeerAddress own_;
  std::vector<PeerSocket> peers_;
};

c10::intrusive_ptr<c10d::Store> keys_of(c10d::Store& store, const std::string& prefix) {
  return c10::make_intrusive<c10d::PrefixStore>(prefix, c10::intrusive_ptr<c10d::Store>::unsafe_reclaim_from_nonowning(&store));
}

template <class Meet>
std::vector<PeerSocket> met(c10d::Store& store, const std::string& prefix, engine::World world, const PeerSocketOptions& options,
                            const Meet& meet) {
  SLUICE_CHECK(0 <= world.rank && world.rank < world.size, "a rank that is none of the ranks");
  try {
    const auto keys = keys_of(store, prefix);
    Meeting meeting(*keys, world, options);
    return meet(meeting);
  } catch (const std::exception& error) {
    throw UserError("rank " + std::to_string(world.rank) + " could not connect with the other " + std::to_string(world.size - 1) +
                        " over '" + options.host + "' to exchange columns: " + torch_reason(error),
                    "each rank must run, and its host must be reachable for all others");
  }
}

}  // namespace

std::vector<PeerSocket> meet_peers(c10d::Store& store, const std::string& prefix, engine::World world,
                                   const PeerSocketOptions& options) {
  return met(store, prefix, world, options, [](Meeting& meeting) { return meeting.meet(); });
}

std::vector<PeerSocket> come_back(c10d::Store& store, const std::string& prefix, engine::World world, int64_t incarnation,
                                  int others, const std::function<void()>& announce, const PeerSocketOptions& options) {
  return met(store, prefix, world, options, [&](Meeting& meeting) { return meeting.come_back(incarnation, others, announce); });
}

PeerSocket connect_with(c10d::Store& store, const std::string& prefix, engine::World world, int rank, int64_t incarnation,
                        const PeerSocketOptions& options) {
  const auto until = Clock::now() + options.to_connect;
  try {
    const std::vector<uint8_t> bytes = keys_of(store, prefix)->get(address_key(rank, incarnation));
    const PeerAddress address = address_of({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    return connect_as(world.rank, address, options.shares_memory, until);
  } catch (const std::exception&) {
    return {};
  }
}

}  // namespace sluice::comm
