#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "engine/plan/plan.h"
#include "engine/schedule/state/packet.h"

namespace sluice::engine {

/// How much went over every edge and through every node. Each counter is written by one thread at a time, in an order that the
/// edges of the graph give, and read by anybody.
class Traffic {
 public:
  explicit Traffic(const Plan& plan);

  struct Amount {
    int64_t micro_batches = 0;
    int64_t tokens = 0;
    int64_t bytes = 0;
  };

  void arrived(int node);                             // a packet has come from all inputs
  void handed_on(int node, const BatchState* batch);  // on all edges out of it; null: the end of an iteration
  void done(int node, const BatchState& batch);       // before the node lets go of what it read
  void held(int node, int64_t micro_batches);         // by a barrier, now
  void packet_done(int node);                         // nothing is left to do with it but to pass it on

  Amount on_edge(size_t edge) const;  // handed on and not done
  Amount through(int node) const;     // done
  int64_t queued(int node) const;     // packets
  int64_t packets_done() const;       // of all nodes: grows whenever a packet gets on
  int64_t held(int node) const;

 private:
  struct Counter {
    std::atomic<int64_t> micro_batches{0}, tokens{0}, bytes{0};
    void add(int64_t tokens, int64_t bytes);
    Amount amount() const;
  };
  struct alignas(64) EdgeCounters {
    Counter in, out;
  };
  struct alignas(64) NodeCounters {
    Counter done;
    std::atomic<int64_t> arrived{0}, finished{0}, held{0};
  };

  const Plan& plan_;
  std::vector<std::vector<size_t>> edges_out_, edges_in_;  // by node
  std::vector<EdgeCounters> edges_;
  std::vector<NodeCounters> nodes_;
};

}  // namespace sluice::engine
