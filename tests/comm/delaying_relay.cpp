#include "tests/comm/delaying_relay.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <stdexcept>
#include <utility>

namespace sluice::comm::testing {
namespace {

using namespace std::chrono_literals;

sockaddr_in loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

// Nobody listens there yet: later.
Descriptor connected(int port, const std::atomic<bool>& ending) {
  while (!ending) {
    Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const sockaddr_in address = loopback(port);
    if (::connect(socket.number(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return socket;
    std::this_thread::sleep_for(5ms);
  }
  return {};
}

bool send_all(int socket, const char* bytes, size_t size) {
  while (size > 0) {
    const ssize_t sent = ::send(socket, bytes, size, MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes += sent, size -= static_cast<size_t>(sent);
  }
  return true;
}

}  // namespace

DelayingRelay::DelayingRelay(int target_port, uint64_t seed, int64_t most_us)
    : target_(target_port), seed_(seed), most_us_(most_us), listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address = loopback(0);
  socklen_t size = sizeof address;
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  if (::bind(listener_.number(), any, size) != 0 || ::listen(listener_.number(), 64) != 0 ||
      ::getsockname(listener_.number(), any, &size) != 0)
    throw std::runtime_error("the relay cannot listen");
  port_ = ntohs(address.sin_port);
  thread_ = std::jthread([this] { accept_all(); });
}

DelayingRelay::~DelayingRelay() {
  ending_ = true;
  ::shutdown(listener_.number(), SHUT_RDWR);
  thread_.join();
  const std::lock_guard lock(mutex_);
  for (Connection& connection : connections_) {
    ::shutdown(connection.near.number(), SHUT_RDWR);
    ::shutdown(connection.far.number(), SHUT_RDWR);
  }
}

// Waits for: a connection. Ends when: the destructor is called.
void DelayingRelay::accept_all() {
  for (uint64_t number = 0; !ending_; ++number) {
    Descriptor near(::accept4(listener_.number(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!near) return;
    Descriptor far = connected(target_, ending_);
    if (!far) return;
    const std::lock_guard lock(mutex_);
    Connection& connection = connections_.emplace_back();
    connection.near = std::move(near);
    connection.far = std::move(far);
    const int here = connection.near.number(), there = connection.far.number();
    connection.there = std::jthread([this, here, there, number] { hand_on(here, there, 2 * number); });
    connection.back = std::jthread([this, here, there, number] { hand_on(there, here, 2 * number + 1); });
  }
}

// Waits for: bytes. Ends when: one of the two is closed.
void DelayingRelay::hand_on(int from, int to, uint64_t seed) {
  RandomStream random(seed_, 9, static_cast<uint32_t>(seed));
  std::array<char, 4096> bytes{};
  while (true) {
    const ssize_t got = ::recv(from, bytes.data(), 1 + random.below(bytes.size()), 0);
    if (got <= 0) break;
    ++delays_;
    std::this_thread::sleep_for(std::chrono::microseconds(random.below(static_cast<uint64_t>(most_us_))));
    if (!send_all(to, bytes.data(), static_cast<size_t>(got))) break;
  }
  ::shutdown(from, SHUT_RDWR);
  ::shutdown(to, SHUT_RDWR);
}

}  // namespace sluice::comm::testing
