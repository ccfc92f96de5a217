#include "base/free_port.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace sluice {
namespace {

// 0: the system has none; errno says why.
int port_of(int socket) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  if (::bind(socket, generic, size) != 0 || ::getsockname(socket, generic, &size) != 0) return 0;
  return ::ntohs(address.sin_port);
}

}  // namespace

int free_port() {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int port = socket < 0 ? 0 : port_of(socket);
  const int error = errno;
  if (socket >= 0) ::close(socket);
  if (port == 0) throw UserError(std::string("no port of this machine is free: ") + std::strerror(error), "name one yourself");
  return port;
}

}  // namespace sluice
