#include "engine/simulation/simulated_network.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/ranks/rank_tree.h"
#include "engine/simulation/simulated_links.h"

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
      links_(std::make_unique<SimulatedLinks>(*this, plan.ranks)),
      waits_(static_cast<size_t>(plan.ranks)) {
  const bool several_hosts = plan.ranks > network_.ranks_per_host;
  const double between = several_hosts ? network_.gigabytes_per_second : network_.host_gigabytes_per_second;
  const double latency = several_hosts ? network_.latency_microseconds : network_.host_latency_microseconds;
  latency_ns_ = std::llround(latency * 1e3);
  bytes_per_ns_ = std::min(between, network_.host_gigabytes_per_second);  // GB/s are bytes a nanosecond
  for (int rank = 0; rank < plan.ranks; ++rank) {
    const World world{.rank = rank, .size = plan.ranks, .slots = static_cast<int>(plan.slots())};
    ranks_.push_back(std::make_unique<OfRank>(*this, world));
  }
}

SimulatedNetwork::~SimulatedNetwork() = default;

Reductions& SimulatedNetwork::of_rank(int rank) { return *ranks_[static_cast<size_t>(rank)]; }

RankLinks SimulatedNetwork::links(int rank) { return links_->of_rank(rank); }

int64_t SimulatedNetwork::transfer_ns(int from, int to, int64_t bytes) const {
  const bool on_one_host = from / network_.ranks_per_host == to / network_.ranks_per_host;
  const double latency = on_one_host ? network_.host_latency_microseconds : network_.latency_microseconds;
  const double rate = on_one_host ? network_.host_gigabytes_per_second : network_.gigabytes_per_second;
  return std::llround(latency * 1e3 + static_cast<double>(bytes) / rate);
}

void SimulatedNetwork::later(int rank, int64_t ns, std::function<void()> come) {
  on_the_way_.emplace(clock_.now_ns() + ns, [this, rank, come = std::move(come)] {
    changes_(rank);
    come();
  });
}

int64_t SimulatedNetwork::sum_ns(int64_t bytes) const {
  const double sent = 2.0 * static_cast<double>(bytes) * (plan_.ranks - 1) / plan_.ranks;
  return 2 * latency_ns_ + std::llround(sent / bytes_per_ns_);
}

void SimulatedNetwork::combine(int rank, const Reductions::Key& key, const Contribution& mine, Reductions::Done done) {
  if (plan_.ranks == 1) return done(mine);
  Meeting& meeting = numbers_[key];
  add_contribution(meeting.all, mine);
  if (come(meeting, rank, std::move(done)))
    send(std::move(numbers_.extract(key).mapped()), RankTree(plan_.ranks).hops() * latency_ns_);
}

void SimulatedNetwork::sum_gradients(int rank, const std::string& model, std::function<void()> done) {
  const std::pair key{model, sums_of_rank_[{model, rank}]++};
  const auto bytes = std::ranges::find(plan_.models, model, &PlanModel::name)->facts.gradient_bytes;
  if (come(gradients_[key], rank, [done = std::move(done)](const Contribution&) { done(); }))
    send(std::move(gradients_.extract(key).mapped()), sum_ns(bytes));
}

// True: all have.
bool SimulatedNetwork::come(Meeting& meeting, int rank, Done done) {
  ++change(rank).for_others;
  meeting.waiting.push_back({rank, std::move(done)});
  return static_cast<int>(meeting.waiting.size()) == plan_.ranks;
}

void SimulatedNetwork::send(Meeting meeting, int64_t ns) {
  for (const Meeting::Waiting& waiting : meeting.waiting) {
    Waits& waits = change(waiting.rank);
    --waits.for_others, ++waits.for_network;
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
