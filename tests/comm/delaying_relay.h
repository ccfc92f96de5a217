#pragma once

#include <atomic>
#include <cstdint>
#include <list>
#include <mutex>
#include <thread>

#include "base/numbers/random.h"
#include "comm/descriptor.h"

namespace sluice::comm::testing {

/// Stands between processes and a port of this machine: what it is sent it hands on a random while later, cut at random places,
/// both ways. Connections end when either side ends them, and all with this. Listens on the loopback alone.
class DelayingRelay {
 public:
  DelayingRelay(int target_port, uint64_t seed, int64_t most_us);
  ~DelayingRelay();

  int port() const { return port_; }
  int64_t delays() const { return delays_; }

 private:
  struct Connection {
    Descriptor near, far;
    std::jthread there, back;
  };

  void accept_all();
  void hand_on(int from, int to, uint64_t seed);

  const int target_;
  const uint64_t seed_;
  const int64_t most_us_;
  int port_ = 0;
  Descriptor listener_;
  std::atomic<int64_t> delays_ = 0;
  std::atomic<bool> ending_ = false;
  std::mutex mutex_;  // of connections_
  std::list<Connection> connections_;
  std::jthread thread_;
};

}  // namespace sluice::comm::testing
