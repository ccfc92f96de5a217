#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "engine/contract/world/world.h"
#include "engine/plan/plan.h"
#include "engine/ranks/rank_links.h"
#include "engine/simulation/carried.h"
#include "engine/simulation/virtual_clock.h"

namespace sluice::engine {

class SimulatedLinks;
class SimulatedWeights;

/// What several ranks of one plan tell each other on a virtual clock. Numbers are added as each rank comes, and are with all of
/// them some latencies after the last (RankTree::hops). A sum of gradients takes what a ring sends, 2 (N - 1) / N of the bytes,
/// on the slowest link, and two latencies: to the owners of the ranges, and back.
///
/// Groups that ranks make for each other travel by `links()`: a message takes one latency, a parcel one more and its bytes on
/// the link between the two, once it is both given and granted. With roles only ranks that train add gradients, and weights
/// travel to the others by `weights()`. What is on one link at the same time does not slow down.
///
/// A meeting costs time and memory in proportion to the ranks. One thread. Must outlive what its ranks still wait for.
class SimulatedNetwork {
 public:
  /// What a rank may wait for, counted.
  struct Waits {
    int64_t for_others = 0;   // meetings that others have not come to yet
    int64_t of_nodes = 0;     // of these: such as a node waits in, and not only its metrics
    int64_t for_network = 0;  // meetings that are on the way
    int64_t columns = 0;      // parcels on the way to it
    int64_t weights = 0;      // versions on the way to it
  };

  /// `changes(rank)` is called before what a rank waits for changes. `plan` and `clock` outlive the network.
  SimulatedNetwork(const Plan& plan, const VirtualClock& clock, std::function<void(int rank)> changes);
  ~SimulatedNetwork();

  const Waits& waits(int rank) const { return waits_[static_cast<size_t>(rank)]; }
  Reductions& of_rank(int rank);
  RankLinks links(int rank);
  SimulatedWeights& weights() { return *weights_; }

  /// Adds up the gradients of a model; the sums of a rank come one after the other, in one order on all ranks.
  void sum_gradients(int rank, const std::string& model, std::function<void()> done);

  /// When something arrives next; kNever: nothing is on the way.
  int64_t next_ns() const;

  /// Hands out what arrives now.
  void deliver();

  /// How long a sum of the gradients of a model is on the way.
  int64_t sum_ns(const ModelFacts& facts) const;

  /// Likewise, so many bytes from one rank to another.
  int64_t transfer_ns(int from, int to, int64_t bytes) const;

  /// Something comes to a rank after that time.
  void later(int rank, int64_t ns, std::function<void()> come);

  /// Likewise columns, of so many bytes.
  void carry_columns(int to, int64_t ns, int64_t bytes, std::function<void()> come);

  /// A version goes from all that train to all that sample, who are named.
  void carry_weights(const std::vector<int>& receivers, int64_t bytes, std::function<void()> come);

  const Carried& columns() const { return columns_; }
  const Carried& versions() const { return versions_; }

 private:
  class OfRank;
  using Done = std::function<void(const Contribution&)>;

  struct Link {
    int64_t latency_ns = 0;
    double bytes_per_ns = 1;
  };

  struct Meeting {
    struct Waiting {
      int rank;
      Done done;
    };
    Contribution all;
    std::vector<Waiting> waiting;
    bool of_nodes = false;
  };

  void combine(int rank, const Reductions::Key& key, const Contribution& mine, Reductions::Done done);
  Link slowest_link(int ranks) const;
  bool come(Meeting& meeting, int rank, int ranks, Done done);
  void send(Meeting meeting, int64_t ns);
  void hand_out(Meeting& meeting);
  Waits& change(int rank);

  const Plan& plan_;
  const VirtualClock& clock_;
  const std::function<void(int rank)> changes_;
  const NetworkSettings network_;
  const Link all_, owners_;  // the slowest link between all ranks, and between those that train
  std::vector<std::unique_ptr<OfRank>> ranks_;
  const std::unique_ptr<SimulatedLinks> links_;
  const std::unique_ptr<SimulatedWeights> weights_;
  Carried columns_, versions_;
  std::vector<Waits> waits_;  // by rank
  std::map<Reductions::Key, Meeting> numbers_;
  std::map<std::pair<std::string, int64_t>, Meeting> gradients_;  // by model, and how many of its sums came before
  std::map<std::pair<std::string, int>, int64_t> sums_of_rank_;   // that a rank has asked for, by model
  std::multimap<int64_t, std::function<void()>> on_the_way_;      // by the time of their arrival
};

}  // namespace sluice::engine
