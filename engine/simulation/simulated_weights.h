#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "engine/plan/plan.h"

namespace sluice::engine {

class SimulatedNetwork;

/// Versions of weights on their way from simulated ranks that train to those that sample. A version sets out when each of the
/// first has published it and each of the others has room for it. It takes one latency and its bytes on the slowest link
/// between them, whatever the number of ranks, since each byte leaves its owner once and is handed on
/// (comm/weights/publication_plan.h). Then it opens on all of them. Of one model one version is on its way at a time. One
/// thread; the network and the plan outlive it.
class SimulatedWeights {
 public:
  SimulatedWeights(const Plan& plan, SimulatedNetwork& network) : plan_(plan), network_(network) {}

  /// A rank that trains the model has its part of a version.
  void publish(const std::string& model, int64_t version);

  /// A rank that samples from it has room for a version; `done`: it is there.
  void receive(int rank, const std::string& model, int64_t version, std::function<void()> done);

 private:
  struct Receiver {
    int rank;
    std::function<void()> done;
  };
  struct Version {
    int published = 0;  // by so many ranks
    std::vector<Receiver> receivers;
  };
  struct Versions {
    std::map<int64_t, Version> open;  // those that are not there yet
    bool is_on_its_way = false;       // the oldest of these
  };

  void set_out(const std::string& model);
  void arrive(const std::string& model);

  const Plan& plan_;
  SimulatedNetwork& network_;
  std::map<std::string, Versions> models_;
};

}  // namespace sluice::engine
