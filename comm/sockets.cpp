#include "comm/sockets.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "base/error.h"

namespace sluice::comm {
namespace {

// What the system knows of a place in the network.
struct Address {
  sockaddr_storage bytes{};
  socklen_t size = 0;

  int family() const { return bytes.ss_family; }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&bytes); }
  sockaddr* mutable_bytes() { return reinterpret_cast<sockaddr*>(&bytes); }
};

std::string digits_of(const Address& address) {
  std::array<char, NI_MAXHOST> text{};
  ::getnameinfo(address.get(), address.size, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST);
  return text.data();
}

std::vector<Address> found_addresses(const std::string& host, int port) {
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* first = nullptr;
  const int error = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &wanted, &first);
  if (error != 0) {
    throw UserError("host '" + host + "' has no address: " + ::gai_strerror(error), "name the host on which rank 0 runs");
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> all(first, &::freeaddrinfo);
  std::vector<Address> addresses;
  for (const addrinfo* one = all.get(); one != nullptr; one = one->ai_next) {
    Address& address = addresses.emplace_back();
    std::memcpy(&address.bytes, one->ai_addr, one->ai_addrlen);
    address.size = one->ai_addrlen;
  }
  return addresses;
}

bool stays_here(const Address& address) {
  if (address.family() == AF_INET) {
    const auto& bytes = reinterpret_cast<const sockaddr_in&>(address.bytes);
    return ntohl(bytes.sin_addr.s_addr) >> 24 == 127;
  }
  const auto& bytes = reinterpret_cast<const sockaddr_in6&>(address.bytes);
  return IN6_IS_ADDR_LOOPBACK(&bytes.sin6_addr) != 0;
}

// ::1 first, where others cannot reach it anyway, and this machine has a name for it; see listen_on().
std::vector<Address> addresses_of(const std::string& host, int port) {
  std::vector<Address> addresses = found_addresses(host, port);
  if (!std::ranges::all_of(addresses, stays_here)) return addresses;
  for (const Address& named : found_addresses("localhost", port)) {
    if (named.family() == AF_INET6) addresses.insert(addresses.begin(), named);
  }
  return addresses;
}

std::string place(const std::string& host, int port) { return host + ":" + std::to_string(port); }

[[noreturn]] void throw_cannot_listen(const std::string& host, int port, int error) {
  if (error == EADDRINUSE) {
    throw UserError("port " + std::to_string(port) + " is in use on this machine: rank 0 cannot serve the store of the run there",
                    "give all ranks of this run another port, or end what has it");
  }
  if (error == EADDRNOTAVAIL)
    throw UserError("host '" + host + "' is not this machine, on which rank 0 runs", "name the host on which rank 0 runs");
  throw UserError("rank 0 cannot listen at " + place(host, port) + ": " + std::strerror(error));
}

// The socket, or the error of the system.
struct Attempt {
  Descriptor socket;
  int error = 0;
};

Attempt listen_at(const Address& address) {
  Attempt attempt{Descriptor(::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC, 0))};
  const int on = 1, off = 0;
  const int number = attempt.socket.number();
  if (number >= 0) {
    ::setsockopt(number, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);  // what a run before has left
    if (address.family() == AF_INET6) ::setsockopt(number, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  }
  const bool listens = number >= 0 && ::bind(number, address.get(), address.size) == 0 && ::listen(number, SOMAXCONN) == 0;
  if (!listens) attempt = {Descriptor(), errno};
  return attempt;
}

// Newer and older protocol in one; where the machine has only the older one, that.
std::vector<Address> every_address(int port) {
  std::vector<Address> addresses = found_addresses("::", port);
  for (const Address& address : found_addresses("0.0.0.0", port)) addresses.push_back(address);
  return addresses;
}

std::string loopback_of(const Address& address) { return address.family() == AF_INET6 ? "::1" : "127.0.0.1"; }

// Waits for: the socket to be ready. Ends when: it is, or it is `until`; false then.
bool wait_for(const Descriptor& socket, int16_t events, Clock::time_point until) {
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
    pollfd one{.fd = socket.number(), .events = events, .revents = 0};
    const int ready = ::poll(&one, 1, static_cast<int>(std::clamp<int64_t>(left, 0, 60'000)));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return false;
    if (Clock::now() >= until) return false;
  }
}

// The first that is up and is reached from others; older protocol first, which every network has.
std::string address_of_an_interface() {
  ifaddrs* first = nullptr;
  if (::getifaddrs(&first) != 0) return {};
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> all(first, &::freeifaddrs);
  for (const auto& [family, size] : {std::pair{AF_INET, sizeof(sockaddr_in)}, {AF_INET6, sizeof(sockaddr_in6)}}) {
    for (const ifaddrs* one = all.get(); one != nullptr; one = one->ifa_next) {
      if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != family || (one->ifa_flags & IFF_UP) == 0) continue;
      Address address;
      address.size = static_cast<socklen_t>(size);
      std::memcpy(&address.bytes, one->ifa_addr, size);
      if (!stays_here(address)) return digits_of(address);
    }
  }
  return {};
}

bool connect_at(const Descriptor& socket, const Address& address, Clock::time_point until) {
  if (::connect(socket.number(), address.get(), address.size) == 0) return true;
  if (errno != EINPROGRESS || !wait_for(socket, POLLOUT, until)) return false;
  int error = 0;
  socklen_t size = sizeof error;
  return ::getsockopt(socket.number(), SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0;
}

// `name_of`: getsockname() or getpeername().
int port_of(int socket, int (*name_of)(int, sockaddr*, socklen_t*)) {
  Address address;
  address.size = sizeof address.bytes;
  if (name_of(socket, address.mutable_bytes(), &address.size) != 0) return 0;
  if (address.family() == AF_INET) return ntohs(reinterpret_cast<const sockaddr_in&>(address.bytes).sin_port);
  if (address.family() == AF_INET6) return ntohs(reinterpret_cast<const sockaddr_in6&>(address.bytes).sin6_port);
  return 0;
}

}  // namespace

bool is_loopback(const std::string& host) { return std::ranges::all_of(found_addresses(host, 0), stays_here); }

Listener listen_on(const std::string& host, int port, bool everywhere) {
  int error = EADDRNOTAVAIL;
  for (const Address& address : everywhere ? every_address(port) : addresses_of(host, port)) {
    Attempt attempt = listen_at(address);
    if (attempt.socket) return {std::move(attempt.socket), everywhere ? loopback_of(address) : digits_of(address)};
    error = attempt.error;
    if (error == EADDRINUSE) break;
  }
  throw_cannot_listen(host, port, error);
}

Connected connect_to(const std::string& host, int port, Clock::time_point until) {
  for (const Address& address : addresses_of(host, port)) {
    Descriptor socket(::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (socket && connect_at(socket, address, until)) return {std::move(socket), digits_of(address)};
  }
  return {};
}

std::string own_address_towards(const std::string& digits, int port) {
  for (const Address& address : found_addresses(digits, port)) {
    const Descriptor socket(::socket(address.family(), SOCK_DGRAM | SOCK_CLOEXEC, 0));
    Address own;
    own.size = sizeof own.bytes;
    const bool found = socket && ::connect(socket.number(), address.get(), address.size) == 0 &&
                       ::getsockname(socket.number(), own.mutable_bytes(), &own.size) == 0;
    if (found && !stays_here(own)) return digits_of(own);
  }
  return address_of_an_interface();
}

std::string ask(const Descriptor& socket, const std::string& question, size_t size, Clock::time_point until) {
  const ssize_t sent = ::send(socket.number(), question.data(), question.size(), MSG_NOSIGNAL);
  std::string answer;
  if (sent != static_cast<ssize_t>(question.size())) return answer;
  while (answer.size() < size && wait_for(socket, POLLIN, until)) {
    std::array<char, 64> bytes{};
    const ssize_t count = ::recv(socket.number(), bytes.data(), std::min(bytes.size(), size - answer.size()), 0);
    if (count <= 0) break;
    answer.append(bytes.data(), static_cast<size_t>(count));
  }
  return answer;
}

void limit_waiting(int socket, double seconds) {
  timeval limit{};
  limit.tv_sec = static_cast<time_t>(seconds);
  limit.tv_usec = static_cast<suseconds_t>(std::lround((seconds - std::floor(seconds)) * 1e6) % 1'000'000);
  for (const int option : {SO_RCVTIMEO, SO_SNDTIMEO}) {
    const bool is_set = ::setsockopt(socket, SOL_SOCKET, option, &limit, sizeof limit) == 0;
    SLUICE_CHECK(is_set, "a socket takes no limit");
  }
}

int own_port(int socket) { return port_of(socket, ::getsockname); }

int peer_port(int socket) { return port_of(socket, ::getpeername); }

}  // namespace sluice::comm
