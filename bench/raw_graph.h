#pragma once

#include <cstdint>
#include <memory>

namespace sluice::bench {

/// What the raw graphs carry: a handle, as the engine's packets are, and what they read of it.
struct Message {
  int64_t sequence = 0;
  std::shared_ptr<const int64_t> number;
};

/// A chain of oneTBB nodes and nothing else. run() puts `count` messages in and returns when all have come out.
class RawGraph {
 public:
  virtual ~RawGraph() = default;
  virtual void run(int64_t count) = 0;
};

/// Serial function_nodes on the calling thread alone.
std::unique_ptr<RawGraph> raw_inline(int nodes);

/// async_nodes that hand messages to two threads in turn, each with a queue under a mutex and a condition variable.
std::unique_ptr<RawGraph> raw_hops(int nodes);

}  // namespace sluice::bench
