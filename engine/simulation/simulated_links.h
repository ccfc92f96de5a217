#pragma once

#include <memory>
#include <vector>

#include "engine/ranks/rank_links.h"

namespace sluice::engine {

class SimulatedNetwork;

/// Mail and parcels between simulated ranks. Nothing gets lost or damaged. One thread; the network outlives it.
class SimulatedLinks {
 public:
  SimulatedLinks(SimulatedNetwork& network, int ranks);
  ~SimulatedLinks();

  RankLinks of_rank(int rank);

 private:
  class OfRank;

  OfRank& rank(int index);

  SimulatedNetwork& network_;
  std::vector<std::unique_ptr<OfRank>> ranks_;
};

}  // namespace sluice::engine
