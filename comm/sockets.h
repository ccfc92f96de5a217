#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "comm/descriptor.h"

/// The few calls of the system's sockets that LibTorch does not do for us: so that a port in use is told from a host that is
/// none, and nobody waits longer than was said. Functions without state. Failure: UserError where a host or a port is the user's.
namespace sluice::comm {

using Clock = std::chrono::steady_clock;

/// Every address of `host` is reached from this machine alone.
bool is_loopback(const std::string& host);

/// A socket that listens, and the address in digits at which this process reaches it.
struct Listener {
  Descriptor socket;
  std::string address;
};

/// Listens on the address that `host` has on this machine, or on all addresses of the machine. For a host that is reached from
/// this machine alone that is ::1, where "localhost" is its name: LibTorch asks for the name of every address, even that of
/// 127.0.0.1 as an address of IPv6, and name servers may be slow.
Listener listen_on(const std::string& host, int port, bool everywhere);

/// A socket that is connected to `host`, and the address in digits that it has found there. No socket: nobody listens there.
struct Connected {
  Descriptor socket;
  std::string address;
};

/// Waits for: an answer of each address in turn. Ends when: one took the connection, all have refused it, or it is `until`.
Connected connect_to(const std::string& host, int port, Clock::time_point until);

/// The address in digits that this machine has on its way to another one; where it has none to others than itself, one of its own
/// that is no loopback. Nothing is sent. Empty: it has none at all.
std::string own_address_towards(const std::string& digits, int port);

/// Sends `question`, and returns as many bytes of the answer as are there at last. Waits for: `size` bytes. Ends when: they are
/// there, the other side closes, or it is `until`.
std::string ask(const Descriptor& socket, const std::string& question, size_t size, Clock::time_point until);

/// From now on whoever reads from or writes to the socket fails after so many seconds without progress.
void limit_waiting(int socket, double seconds);

/// The port of this side; 0: the descriptor is no socket that has one.
int own_port(int socket);

/// The port of the other side; 0: the descriptor is no socket that is connected.
int peer_port(int socket);

}  // namespace sluice::comm
