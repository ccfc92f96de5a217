#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "comm/descriptor.h"
#include "engine/contract/world/world.h"

namespace c10d {
class Store;
}

namespace sluice::comm {

struct PeerSocketOptions {
  std::string host = "127.0.0.1";                // this machine's address or name, which the other ranks can reach
  bool shares_memory = true;                     // with ranks of this host
  std::chrono::milliseconds to_connect{60'000};  // how long the others may take to come
  std::stop_token give_up = {};                  // ends the wait for them
};

/// A connection to another rank.
struct PeerSocket {
  Descriptor socket;
  bool is_local = false;  // the other rank is on this host, and descriptors may be passed over it
  int host = 0;           // of the rank: its lowest rank with which memory is shared
};

/// Connects each rank of a run with each other: with those of this host over Unix sockets, which have no name in any folder, with
/// others over TCP. Whether a rank is on this host is not asked, but tried. By rank; of this one itself there is a host and no
/// socket. All ranks get the same hosts.
///
/// `store`: where ranks find each other. `prefix`: of the keys, the same on all ranks and new in this store. Who connects must
/// know a random word that the other rank has put into the store, so strangers at the port are turned away, and over a Unix
/// socket must be of the same user.
///
/// Waits for: all ranks. Ends when: all are connected with each other, the time is over, or on `give_up`. Failure: throws
/// UserError then, and where there is no such host.
std::vector<PeerSocket> meet_peers(c10d::Store& store, const std::string& prefix, engine::World world,
                                   const PeerSocketOptions& options = {});

/// Of a process that takes the place of one that is lost (comm/incarnation.h): the ranks below `others` connect with it when they
/// are told that it is there, which `announce` does. By rank; of the rest there is no socket. Waits and fails as meet_peers().
std::vector<PeerSocket> come_back(c10d::Store& store, const std::string& prefix, engine::World world, int64_t incarnation,
                                  int others, const std::function<void()>& announce, const PeerSocketOptions& options);

/// Of those: connects with it. Waits for: its answer. Ends when: it comes, or the time is over; no socket then, and where it has
/// gone again.
PeerSocket connect_with(c10d::Store& store, const std::string& prefix, engine::World world, int rank, int64_t incarnation,
                        const PeerSocketOptions& options);

}  // namespace sluice::comm
