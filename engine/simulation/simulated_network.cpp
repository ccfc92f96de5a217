#include "engine/simulation/simulated_network.h"

#include <algorithm>
#include <utility>

#include "engine/plan/cluster_work.h"
#include "engine/ranks/rank_tree.h"
#include "engine/simulation/simulated_links.h"
#include "engine/simulation/simulated_time.h"
#include "engine/simulation/simulated_weights.h"

namespace sluice::engine {

class SimulatedNetwork::OfRank final : public Reductions {
 public:
  OfRank(SimulatedNetwork& network, World world) : network_(network), world_(world) {}

  World world() const override { return world_; }
  void combine(const Key& key, Contribution mine, Done done) override {
    network_.combine(world_.rank, key, mine, std::move(done));
  }

 private:
  SimulatedNetwork& network_;
  const World world_;
};

SimulatedNetwork::SimulatedNetwork(const Plan& plan, const VirtualClock& clock, std::function<void(int rank)> changes)
    : plan_(plan),
      clock_(clock),
      changes_(std::move(changes)),
      network_(plan.cluster.network.value_or(NetworkSettings{})),
      all_(slowest_link(plan.scheduling_ranks())),
      owners_(slowest_link(plan.owners())),
      links_(std::make_unique<SimulatedLinks>(*this, plan.scheduling_ranks())),
      weights_(std::make_unique<SimulatedWeights>(plan, *this)),
      waits_(static_cast<size_t>(plan.scheduling_ranks())) {
  for (int rank = 0; rank < plan.scheduling_ranks(); ++rank) {
    const World world{.rank = rank, .size = plan.scheduling_ranks(), .slots = static_cast<int>(plan.slots())};
    ranks_.push_back(std::make_unique<OfRank>(*this, world));
  }
}

SimulatedNetwork::~SimulatedNetwork() = default;

// Of the first so many ranks. GB/s are bytes a nanosecond.
SimulatedNetwork::Link SimulatedNetwork::slowest_link(int ranks) const {
  const bool several_hosts = ranks > network_.ranks_per_host;
  const double between = several_hosts ? network_.gigabytes_per_second : network_.host_gigabytes_per_second;
  const double latency = several_hosts ? network_.latency_microseconds : network_.host_latency_microseconds;
  return {.latency_ns = simulated_ns(latency * 1e3), .bytes_per_ns = std::min(between, network_.host_gigabytes_per_second)};
}

Reductions& SimulatedNetwork::of_rank(int rank) { return *ranks_[static_cast<size_t>(rank)]; }

RankLinks SimulatedNetwork::links(int rank) { return links_->of_rank(rank); }

int64_t SimulatedNetwork::transfer_ns(int from, int to, int64_t bytes) const {
  const bool on_one_host = from / network_.ranks_per_host == to / network_.ranks_per_host;
  const double latency = on_one_host ? network_.host_latency_microseconds : network_.latency_microseconds;
  const double rate = on_one_host ? network_.host_gigabytes_per_second : network_.gigabytes_per_second;
  return simulated_ns(latency * 1e3 + static_cast<double>(bytes) / rate);
}

void SimulatedNetwork::later(int rank, int64_t ns, std::function<void()> come) {
  on_the_way_.emplace(clock_.now_ns() + ns, [this, rank, come = std::move(come)] {
    changes_(rank);
    come();
  });
}

void SimulatedNetwork::carry_columns(int to, int64_t ns, int64_t bytes, std::function<void()> come) {
  columns_.add(clock_.now_ns(), ns, bytes);
  ++change(to).columns;
  later(to, ns, [this, to, come = std::move(come)] {
    --waits_[static_cast<size_t>(to)].columns;
    come();
  });
}

void SimulatedNetwork::carry_weights(const std::vector<int>& receivers, int64_t bytes, std::function<void()> come) {
  const int64_t ns = all_.latency_ns + simulated_ns(static_cast<double>(bytes) / all_.bytes_per_ns);
  versions_.add(clock_.now_ns(), ns, bytes);
  for (const int rank : receivers) ++change(rank).weights;
  on_the_way_.emplace(clock_.now_ns() + ns, [this, receivers, come = std::move(come)] {
    for (const int rank : receivers) --change(rank).weights;
    come();
  });
}

int64_t SimulatedNetwork::sum_ns(const ModelFacts& facts) const {
  return 2 * owners_.latency_ns + simulated_ns(static_cast<double>(sent_in_a_step(plan_, facts)) / owners_.bytes_per_ns);
}

void SimulatedNetwork::combine(int rank, const Reductions::Key& key, const Contribution& mine, Reductions::Done done) {
  if (plan_.owners() == 1) return done(mine);
  Meeting& meeting = numbers_[key];
  add_contribution(meeting.all, mine);
  meeting.of_nodes = key.node >= 0 && key.point >= Reductions::Key::kEnd;
  if (come(meeting, rank, plan_.owners(), std::move(done)))
    send(std::move(numbers_.extract(key).mapped()), RankTree(plan_.owners()).hops() * owners_.latency_ns);
}

void SimulatedNetwork::sum_gradients(int rank, const std::string& model, std::function<void()> done) {
  if (plan_.owners() == 1) return done();
  const std::pair key{model, sums_of_rank_[{model, rank}]++};
  const ModelFacts& facts = plan_.model(model).facts;
  Meeting& meeting = gradients_[key];
  meeting.of_nodes = true;
  if (come(meeting, rank, plan_.owners(), [done = std::move(done)](const Contribution&) { done(); }))
    send(std::move(gradients_.extract(key).mapped()), sum_ns(facts));
}

// True: all of so many ranks have.
bool SimulatedNetwork::come(Meeting& meeting, int rank, int ranks, Done done) {
  Waits& waits = change(rank);
  ++waits.for_others, waits.of_nodes += meeting.of_nodes;
  meeting.waiting.push_back({rank, std::move(done)});
  return std::ssize(meeting.waiting) == ranks;
}

void SimulatedNetwork::send(Meeting meeting, int64_t ns) {
  for (const Meeting::Waiting& waiting : meeting.waiting) {
    Waits& waits = change(waiting.rank);
    --waits.for_others, waits.of_nodes -= meeting.of_nodes, ++waits.for_network;
  }
  on_the_way_.emplace(clock_.now_ns() + ns, [this, sent = std::make_shared<Meeting>(std::move(meeting))] { hand_out(*sent); });
}

void SimulatedNetwork::hand_out(Meeting& meeting) {
  for (Meeting::Waiting& waiting : meeting.waiting) {
    --change(waiting.rank).for_network;
    std::exchange(waiting.done, {})(meeting.all);
  }
}

SimulatedNetwork::Waits& SimulatedNetwork::change(int rank) {
  changes_(rank);
  return waits_[static_cast<size_t>(rank)];
}

int64_t SimulatedNetwork::next_ns() const { return on_the_way_.empty() ? kNever : on_the_way_.begin()->first; }

void SimulatedNetwork::deliver() {
  while (next_ns() == clock_.now_ns()) {
    const std::function<void()> come = std::move(on_the_way_.extract(on_the_way_.begin()).mapped());
    come();
  }
}

}  // namespace sluice::engine
