#include "engine/simulation/simulation.h"

#include <algorithm>
#include <deque>
#include <queue>
#include <utility>

#include "engine/observe/monitor.h"
#include "engine/simulation/rank_simulation.h"
#include "engine/simulation/simulated_network.h"

namespace sluice::engine {
namespace {

constexpr size_t kParts = 60;
constexpr double kSecondsPerNs = 1e-9;

double in_seconds(int64_t ns) { return static_cast<double>(ns) * kSecondsPerNs; }

/// Goes from one event to the next, until nothing is left that could start: the end of some work of a rank, or what arrives over the
/// network. What ends at the same time ends in the order of ranks and executors, then what arrives is handed out, and only then
/// anything else begins, so that the course is always the same. An event costs what the ranks that it concerns have to do.
class Simulation {
 public:
  Simulation(const Plan& plan, const Costs& costs, std::vector<WorkObserver*> observers)
      : plan_(plan), network_(plan, clock_, [this](int rank) { change(rank); }), changed_(static_cast<size_t>(plan.ranks)) {
    for (int rank = 0; rank < plan.ranks; ++rank)
      ranks_.emplace_back(plan, costs, clock_, network_, rank, rank == 0 ? observers : std::vector<WorkObserver*>());
  }

  SimulationResult run() {
    for (int rank = 0; rank < plan_.ranks; ++rank) {
      change(rank);
      ranks_[static_cast<size_t>(rank)].start();
    }
    while (go_on()) {
    }
    for (RankSimulation& rank : ranks_) rank.finish();
    for (RankSimulation& rank : ranks_) rank.rethrow();
    return result();
  }

 private:
  using Event = std::pair<int64_t, int>;  // when, and the rank

  // Something is about to change for the rank: what could start there is looked for again. Ranks tell each other something while
  // they are made, when no time has passed.
  void change(int rank) {
    if (static_cast<size_t>(rank) < ranks_.size()) ranks_[static_cast<size_t>(rank)].settle();
    if (std::exchange(changed_[static_cast<size_t>(rank)], 1) == 0) to_begin_.push_back(rank);
  }

  bool go_on() {
    std::ranges::sort(to_begin_);
    for (const int rank : std::exchange(to_begin_, {})) begin(rank);
    const int64_t next = std::min(events_.empty() ? kNever : events_.top().first, network_.next_ns());
    if (next == kNever) return false;
    clock_.set(next);
    while (!events_.empty() && events_.top().first == next) {
      const int rank = events_.top().second;
      events_.pop();
      RankSimulation& ends = ranks_[static_cast<size_t>(rank)];
      if (ends.next_ns() != next) continue;
      change(rank);
      ends.end();
    }
    network_.deliver();
    return true;
  }

  void begin(int rank) {
    RankSimulation& begins = ranks_[static_cast<size_t>(rank)];
    changed_[static_cast<size_t>(rank)] = 0;
    begins.begin();
    if (const int64_t next = begins.next_ns(); next != kNever) events_.emplace(next, rank);
  }

  SimulationResult result() {
    SimulationResult result;
    // Several ranks are over when what they tell each other at last has come.
    result.seconds = in_seconds(plan_.ranks == 1 ? ranks_.front().last_work_ns() : clock_.now_ns());
    add_reports(result);
    add_executors(result);
    add_nodes(result);
    result.notes = ranks_.front().notes();
    result.tokens_in_flight = ranks_.front().tokens_in_flight(kParts);
    if (plan_.ranks > 1) result.ranks = ranks_of(result.seconds);
    const auto stuck = std::ranges::find_if(ranks_, &RankSimulation::is_stuck);
    if (stuck != ranks_.end()) result.stall = stall(stuck->status());
    return result;
  }

  double mean(double sum) const { return sum / plan_.ranks; }

  void add_reports(SimulationResult& result) const {
    const RankSimulation::Reported& first = ranks_.front().reported();
    result.iterations = first.iterations;
    result.iteration_seconds = first.iteration_seconds;
    result.tokens = first.tokens;
    result.sampled_tokens = first.sampled_tokens;
    for (const RankSimulation& rank : ranks_) {
      result.rollout_seconds += mean(rank.reported().rollout_seconds);
      result.train_seconds += mean(rank.reported().train_seconds);
      result.overlap_seconds += mean(rank.reported().overlap_seconds);
      result.tail_seconds += mean(rank.reported().tail_seconds);
    }
  }

  void add_executors(SimulationResult& result) const {
    for (size_t i = 0; i < plan_.executors.size(); ++i) {
      SimulationResult::Executor& use = result.executors.emplace_back(
          SimulationResult::Executor{.name = plan_.executors[i].name, .threads = plan_.executors[i].threads});
      for (const RankSimulation& rank : ranks_) {
        const RankSimulation::Use& of_rank = rank.uses()[i];
        use.busy_seconds += mean(in_seconds(of_rank.busy));
        use.gap_seconds += mean(in_seconds(of_rank.gap));
        use.no_credit_seconds += mean(in_seconds(of_rank.no_credit));
        use.no_weights_seconds += mean(in_seconds(of_rank.no_weights));
        use.no_input_seconds += mean(in_seconds(of_rank.no_input));
      }
    }
  }

  // Micro-batches and tokens are those of all ranks.
  void add_nodes(SimulationResult& result) const {
    for (size_t i = 0; i < plan_.nodes.size(); ++i) {
      if (!plan_.is_inside_rollout(static_cast<int>(i)))
        result.nodes.push_back({.name = plan_.nodes[i].name, .executor = plan_.nodes[i].executor});
    }
    for (const RankSimulation& rank : ranks_) {
      const RunStatus status = rank.status();
      size_t at = 0;
      for (size_t i = 0; i < plan_.nodes.size(); ++i) {
        if (plan_.is_inside_rollout(static_cast<int>(i))) continue;
        SimulationResult::Node& node = result.nodes[at++];
        node.micro_batches += status.nodes[i].micro_batches;
        node.tokens += status.nodes[i].tokens;
        node.busy_seconds += mean(status.nodes[i].busy_seconds);
      }
      result.budget = status.budget;
      result.tokens_in_flight_peak = std::max(result.tokens_in_flight_peak, status.tokens_in_flight_peak);
      result.column_bytes_peak = std::max(result.column_bytes_peak, status.column_bytes_peak);
    }
  }

  SimulationResult::Ranks ranks_of(double seconds) const {
    SimulationResult::Ranks ranks{.count = plan_.ranks};
    const auto share = [&](int64_t RankSimulation::RankUse::*part) {
      SimulationResult::Ranks::Share share{.least = 1};
      for (const RankSimulation& rank : ranks_) {
        const double of_rank = seconds > 0 ? std::min(1.0, in_seconds(rank.use().*part) / seconds) : 0;
        share = {std::min(share.least, of_rank), share.mean + mean(of_rank), std::max(share.most, of_rank)};
      }
      return share;
    };
    ranks.busy = share(&RankSimulation::RankUse::busy);
    ranks.waits_for_others = share(&RankSimulation::RankUse::for_others);
    ranks.waits_for_network = share(&RankSimulation::RankUse::for_network);
    for (const RankSimulation& rank : ranks_) ranks.network_seconds += mean(in_seconds(rank.use().for_network));
    return ranks;
  }

  // Nothing hangs in a simulation: what a watchdog says of a run is true, but for how it found out and what to do.
  static Problem stall(const RunStatus& status) {
    Problem problem = stall_problem(status, 0);
    problem.message = "the run would stall in iteration " + std::to_string(std::max<int64_t>(0, status.sampling_iteration)) +
                      ": nothing could get on any more";
    problem.help = "raise tokens_in_flight in [budget]; a plan that was accepted should not stall, so please report it too";
    return problem;
  }

  const Plan& plan_;
  VirtualClock clock_;
  SimulatedNetwork network_;
  std::deque<RankSimulation> ranks_;
  std::vector<uint8_t> changed_;  // by rank: it is in to_begin_
  std::vector<int> to_begin_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;  // some of them outdated
};

}  // namespace

SimulationResult simulate(const Plan& plan, const Costs& costs, std::vector<WorkObserver*> observers) {
  return Simulation(plan, costs, std::move(observers)).run();
}

}  // namespace sluice::engine
