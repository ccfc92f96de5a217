#include "comm/weights/common_memory.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "comm/parcels/shared_memory.h"
#include "comm/store_connection.h"

namespace sluice::comm {
namespace {

constexpr int kLooksAtGiveUp = 100;  // milliseconds

// What goes with a descriptor, so that ranks that do not ask for the same notice.
struct AskedFor {
  uint64_t bytes = 0;
  uint64_t name = 0;

  bool operator==(const AskedFor&) const = default;
};

AskedFor asked_for(const std::string& name, size_t bytes) {
  uint64_t hash = 0xCBF29CE484222325u;  // FNV-1a
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3u;
  return {.bytes = bytes, .name = hash};
}

[[noreturn]] void throw_gone(int rank) {
  throw UserError("rank " + std::to_string(rank) + " is gone, with which this one has memory in common");
}

// Waits for: something to read. Ends when: it is there, or on `give_up`.
void wait_for(const Descriptor& socket, const std::stop_token& give_up) {
  pollfd waiting{.fd = socket.number(), .events = POLLIN, .revents = 0};
  while (::poll(&waiting, 1, kLooksAtGiveUp) <= 0)
    if (give_up.stop_requested()) throw UserError("the run has ended before all ranks had the memory that they have in common");
}

// A message of a fixed size, and a descriptor beside it, or none: -1.
void send_message(const PeerSocket& peer, int rank, const AskedFor& what, int descriptor) {
  AskedFor copy = what;
  iovec part{.iov_base = &copy, .iov_len = sizeof copy};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> beside{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (descriptor >= 0) {
    message.msg_control = beside.data();
    message.msg_controllen = beside.size();
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
  }
  if (::sendmsg(peer.socket.number(), &message, MSG_NOSIGNAL) != static_cast<ssize_t>(sizeof copy)) throw_gone(rank);
}

// The descriptor that came beside it; none: it had none.
std::pair<AskedFor, Descriptor> receive_message(const PeerSocket& peer, int rank, const std::stop_token& give_up) {
  wait_for(peer.socket, give_up);
  AskedFor what;
  iovec part{.iov_base = &what, .iov_len = sizeof what};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> beside{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = beside.data();
  message.msg_controllen = beside.size();
  if (::recvmsg(peer.socket.number(), &message, MSG_CMSG_CLOEXEC | MSG_WAITALL) != static_cast<ssize_t>(sizeof what))
    throw_gone(rank);
  const cmsghdr* const header = CMSG_FIRSTHDR(&message);
  if (header == nullptr || header->cmsg_type != SCM_RIGHTS) return {what, Descriptor()};
  int descriptor = -1;
  std::memcpy(&descriptor, CMSG_DATA(header), sizeof descriptor);
  return {what, Descriptor(descriptor)};
}

std::shared_ptr<std::byte> handle_of(std::shared_ptr<SharedMemory> memory) {
  std::byte* const data = memory->data();
  return {std::move(memory), data};
}

}  // namespace

CommonMemoryOver::CommonMemoryOver(engine::SharingRanks ranks, std::vector<PeerSocket> peers, std::stop_token give_up)
    : ranks_(std::move(ranks)), peers_(std::move(peers)), give_up_(std::move(give_up)) {
  for (int place = 0; place < ranks_.count(); ++place) check_host(place);
}

void CommonMemoryOver::check_host(int place) const {
  const auto is_here = [this, own = peers_[static_cast<size_t>(ranks_.place)].host](const PeerSocket& peer) {
    return &peer == &peers_[static_cast<size_t>(ranks_.place)] || (peer.is_local && peer.host == own);
  };
  if (is_here(peers_[static_cast<size_t>(place)])) return;
  const std::string sharing = ranks_.groups() == 1 ? "all ranks that train" : "each " + std::to_string(ranks_.count()) + " ranks";
  throw UserError("rank " + std::to_string(number(place)) + " is on another host than rank " +
                      std::to_string(number(ranks_.place)) + ", and with shard = \"parameters\" " + sharing +
                      " have weights in common",
                  "shard_ranks in [cluster]: as many ranks as each host has, of which " +
                      std::to_string(std::ranges::count_if(peers_, is_here)) + " are on this one; or shard = \"optimizer\"");
}

std::shared_ptr<std::byte> CommonMemoryOver::get(const std::string& name, size_t bytes) {
  return ranks_.place == 0 ? make(name, bytes) : take(name, bytes);
}

std::shared_ptr<std::byte> CommonMemoryOver::make(const std::string& name, size_t bytes) {
  auto memory = std::make_shared<SharedMemory>(std::max<size_t>(bytes, 1));
  for (int place = 1; place < ranks_.count(); ++place)
    send_message(peers_[static_cast<size_t>(place)], number(place), asked_for(name, bytes), memory->descriptor());
  return handle_of(std::move(memory));
}

std::shared_ptr<std::byte> CommonMemoryOver::take(const std::string& name, size_t bytes) {
  const auto [what, descriptor] = receive_message(peers_.front(), number(0), give_up_);
  SLUICE_CHECK(descriptor && what == asked_for(name, bytes),
               "rank " + std::to_string(number(0)) + " has other memory in common than " + name);
  return handle_of(std::make_shared<SharedMemory>(descriptor, std::max<size_t>(bytes, 1)));
}

// All tell the first one, and it tells all.
void CommonMemoryOver::meet() {
  const AskedFor word;
  if (ranks_.place > 0) {
    send_message(peers_.front(), number(0), word, -1);
    receive_message(peers_.front(), number(0), give_up_);
    return;
  }
  for (int place = 1; place < ranks_.count(); ++place)
    receive_message(peers_[static_cast<size_t>(place)], number(place), give_up_);
  for (int place = 1; place < ranks_.count(); ++place) send_message(peers_[static_cast<size_t>(place)], number(place), word, -1);
}

std::unique_ptr<engine::CommonMemory> common_memory_over(const Store& store, const std::string& name,
                                                         const engine::SharingRanks& ranks, double join_seconds,
                                                         const std::stop_token& give_up) {
  const std::shared_ptr<StoreConnection> connection = store.connect();
  const std::stop_callback interrupt(give_up, [connection] { connection->interrupt(); });
  const PeerSocketOptions sockets{.host = store.own_address(),
                                  .to_connect = std::chrono::milliseconds(static_cast<int64_t>(join_seconds * 1000)),
                                  .give_up = give_up};
  const std::string prefix = "common_memory/" + name + "/" + std::to_string(ranks.members.front());
  const engine::World world{.rank = ranks.place, .size = ranks.count()};
  return std::make_unique<CommonMemoryOver>(ranks, meet_peers(connection->torch_store(), prefix, world, sockets), give_up);
}

}  // namespace sluice::comm
