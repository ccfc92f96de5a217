#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include "comm/descriptor.h"

namespace sluice::comm::testing {

/// A port of this machine that nobody listens at.
inline int free_port() {
  const Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ::bind(socket.number(), reinterpret_cast<sockaddr*>(&address), size);
  ::getsockname(socket.number(), reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.sin_port);
}

}  // namespace sluice::comm::testing
