#include "base/process/free_port.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <random>
#include <string>

#include "base/error.h"

namespace sluice {
namespace {

constexpr int kFirst = 10'000;  // below are those of well-known servers
constexpr int kTries = 64;

// The port, or with 0 one that the system gives. 0: it is taken, or there is none; errno says why.
int bound_port(int port) {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (socket < 0) return 0;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
  address.sin_port = ::htons(static_cast<uint16_t>(port));
  socklen_t size = sizeof address;
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  const bool is_bound = ::bind(socket, generic, size) == 0 && ::getsockname(socket, generic, &size) == 0;
  const int error = errno;
  ::close(socket);
  errno = error;
  return is_bound ? ::ntohs(address.sin_port) : 0;
}

}  // namespace

int first_given_port() {
  constexpr int kUsual = 32'768;
  std::ifstream range("/proc/sys/net/ipv4/ip_local_port_range");
  int first = 0;
  return range >> first ? first : kUsual;
}

// At random, since others may look for one at the same time.
int free_port() {
  if (const int end = first_given_port(); end > kFirst) {
    std::random_device random;
    for (int i = 0; i < kTries; ++i)
      if (const int port = bound_port(kFirst + static_cast<int>(random() % static_cast<unsigned>(end - kFirst))); port != 0)
        return port;
  }
  const int port = bound_port(0);
  if (port == 0) throw UserError(std::string("no port of this machine is free: ") + std::strerror(errno), "name one yourself");
  return port;
}

}  // namespace sluice
