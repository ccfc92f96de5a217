#include "engine/simulation/simulation.h"

#include <algorithm>
#include <deque>
#include <queue>
#include <utility>

#include "engine/observe/monitor.h"
#include "engine/simulation/rank_simulation.h"
#include "engine/simulation/simulated_network.h"
#include "engine/simulation/simulated_time.h"

namespace sluice::engine {
namespace {

constexpr size_t kParts = 60;
constexpr double kSecondsPerNs = 1e-9;

double in_seconds(int64_t ns) { return static_cast<double>(ns) * kSecondsPerNs; }

/// Goes from one event to the next, until nothing is left that could start: the end of some work of a rank, or what arrives
/// over the network. What ends at the same time ends in the order of ranks and executors, then what arrives is handed out, and
/// only then anything else begins, so that the course is always the same. An event costs what the ranks that it concerns have
/// to do.
class Simulation {
 public:
  Simulation(const Plan& plan, const Costs& costs, std::vector<WorkObserver*> observers)
      : plan_(plan),
        network_(plan, clock_, [this](int rank) { change(rank); }),
        changed_(static_cast<size_t>(plan.scheduling_ranks())),
        at_work_(static_cast<size_t>(plan.scheduling_ranks())) {
    for (int rank = 0; rank < plan.scheduling_ranks(); ++rank)
      ranks_.emplace_back(plan, costs, clock_, network_, rank, rank == 0 ? observers : std::vector<WorkObserver*>());
  }

  SimulationResult run(const std::function<void(int64_t)>& on_iterations) {
    for (int rank = 0; rank < plan_.scheduling_ranks(); ++rank) {
      change(rank);
      ranks_[static_cast<size_t>(rank)].start();
    }
    for (int64_t told = 0; go_on();) {
      const int64_t ended = ranks_.front().reported().iterations;
      if (on_iterations && ended > told) on_iterations(told = ended);
    }
    for (RankSimulation& rank : ranks_) rank.finish();
    for (RankSimulation& rank : ranks_) rank.rethrow();
    return result();
  }

 private:
  using Event = std::pair<int64_t, int>;  // when, and the rank

  // Something is about to change for the rank: what could start there is looked for again. Ranks tell each other something
  // while they are made, when no time has passed.
  void change(int rank) {
    if (static_cast<size_t>(rank) < ranks_.size()) ranks_[static_cast<size_t>(rank)].settle();
    if (std::exchange(changed_[static_cast<size_t>(rank)], 1) == 0) to_begin_.push_back(rank);
  }

  bool go_on() {
    std::ranges::sort(to_begin_);
    for (const int rank : std::exchange(to_begin_, {})) begin(rank);
    const int64_t next = std::min(events_.empty() ? kNever : events_.top().first, network_.next_ns());
    if (next == kNever) return false;
    if (samplers_at_work_ > 0 && trainers_at_work_ > 0) both_at_work_ns_ += next - clock_.now_ns();
    check_simulated_time(next);
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
    if (plan_.has_roles()) {
      const bool works = begins.works(), worked = std::exchange(at_work_[static_cast<size_t>(rank)], works) != 0;
      (plan_.trains(rank) ? trainers_at_work_ : samplers_at_work_) += works - worked;
    }
    if (const int64_t next = begins.next_ns(); next != kNever) events_.emplace(next, rank);
  }

  SimulationResult result() {
    SimulationResult result;
    // Several ranks are over when what they tell each other at last has come.
    result.seconds = in_seconds(plan_.scheduling_ranks() == 1 ? ranks_.front().last_work_ns() : clock_.now_ns());
    add_reports(result);
    add_executors(result);
    add_nodes(result);
    result.notes = ranks_.front().notes();
    result.tokens_in_flight = ranks_.front().tokens_in_flight(kParts);
    if (plan_.scheduling_ranks() > 1 || !plan_.forward_roles.empty()) result.ranks = ranks_of(result.seconds);
    const auto stuck = std::ranges::find_if(ranks_, &RankSimulation::is_stuck);
    if (stuck != ranks_.end()) result.stall = stall(stuck->status());
    return result;
  }

  // By ranks, the sum of which is divided by their number.
  double mean(double sum, int of) const { return sum / of; }
  double mean(double sum) const { return mean(sum, plan_.scheduling_ranks()); }

  bool has(const RankSimulation& rank, const std::string& executor) const { return plan_.has_executor(rank.rank(), executor); }
  int ranks_with(const std::string& executor) const {
    return static_cast<int>(std::ranges::count_if(ranks_, [&](const RankSimulation& rank) { return has(rank, executor); }));
  }

  void add_reports(SimulationResult& result) const {
    const RankSimulation::Reported& first = ranks_.front().reported();
    result.iterations = first.iterations;
    result.iteration_seconds = first.iteration_seconds;
    result.tokens = first.tokens;
    result.sampled_tokens = first.sampled_tokens;
    double rollout = first.rollout_seconds * plan_.samplers(), train = first.train_seconds * plan_.owners();
    double overlap = first.overlap_seconds * plan_.scheduling_ranks();
    for (const RankSimulation& rank : ranks_) {
      rollout += rank.rest().rollout;
      train += rank.rest().train;
      overlap += rank.rest().overlap;
    }
    result.rollout_seconds = mean(rollout, plan_.samplers());
    result.train_seconds = mean(train, plan_.owners());
    result.overlap_seconds = mean(overlap);
    result.tail_seconds = first.tail_seconds;
    if (plan_.has_roles()) result.overlap_seconds = in_seconds(both_at_work_ns_);
  }

  void add_executors(SimulationResult& result) const {
    for (size_t i = 0; i < plan_.executors.size(); ++i) {
      SimulationResult::Executor& use = result.executors.emplace_back(
          SimulationResult::Executor{.name = plan_.executors[i].name, .threads = plan_.executors[i].threads});
      const int ranks = ranks_with(use.name);
      for (const RankSimulation& rank : ranks_) {
        if (!has(rank, use.name)) continue;
        const RankSimulation::Use& of_rank = rank.uses()[i];
        use.busy_seconds += mean(in_seconds(of_rank.busy), ranks);
        use.gap_seconds += mean(in_seconds(of_rank.gap), ranks);
        use.no_credit_seconds += mean(in_seconds(of_rank.no_credit), ranks);
        use.no_weights_seconds += mean(in_seconds(of_rank.no_weights), ranks);
        use.no_input_seconds += mean(in_seconds(of_rank.no_input), ranks);
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
        node.busy_seconds += mean(status.nodes[i].busy_seconds, ranks_with(node.executor));
      }
      result.budget = status.budget;
      result.tokens_in_flight_peak = std::max(result.tokens_in_flight_peak, status.tokens_in_flight_peak);
      result.column_bytes_peak = std::max(result.column_bytes_peak, status.column_bytes_peak);
    }
  }

  SimulationResult::Ranks ranks_of(double seconds) const {
    using Use = RankSimulation::RankUse;
    SimulationResult::Ranks ranks{.count = plan_.scheduling_ranks(), .forward = plan_.forward_ranks()};
    ranks.busy = share(&Use::busy, seconds, 0, plan_.scheduling_ranks());
    ranks.waits_for_others = share(&Use::for_others, seconds, 0, plan_.scheduling_ranks());
    ranks.waits_for_network = share(&Use::for_network, seconds, 0, plan_.scheduling_ranks());
    for (const RankSimulation& rank : ranks_) ranks.network_seconds += mean(in_seconds(rank.use().for_network));
    ranks.columns = carried(network_.columns());
    ranks.weights = carried(network_.versions());
    double busy = ranks.busy.mean * ranks.count;
    for (const PlanRole* const role : plan_.all_roles()) {
      const bool forwards = plan_.forwards(role->first_rank);
      ranks.roles.push_back(forwards ? forward_role(*role, seconds) : scheduling_role(*role, seconds));
      if (forwards) busy += ranks.roles.back().busy.mean * role->ranks;
    }
    ranks.idle = 1 - busy / (ranks.count + ranks.forward);
    return ranks;
  }

  // Without those of its ranks that assist.
  SimulationResult::Role scheduling_role(const PlanRole& role, double seconds) const {
    using Use = RankSimulation::RankUse;
    const int count = plan_.trains(role.first_rank) ? plan_.owners() : plan_.samplers();
    const auto part_of_time = [&](int64_t Use::*part) { return share(part, seconds, role.first_rank, count); };
    return {.name = role.name,
            .ranks = role.ranks,
            .busy = part_of_time(&Use::busy),
            .waits_for_weights = part_of_time(&Use::for_weights),
            .waits_for_groups = part_of_time(&Use::for_groups),
            .waits_for_others = part_of_time(&Use::for_others),
            .waits_for_network = part_of_time(&Use::for_network)};
  }

  // Its ranks are busy as long as those that ask them wait, each with its part of what they all ask for.
  SimulationResult::Role forward_role(const PlanRole& role, double seconds) const {
    SimulationResult::Role of_role{.name = role.name, .ranks = role.ranks};
    for (size_t i = 0; i < plan_.executors.size(); ++i) {
      if (!plan_.executors[i].name.starts_with(role.name + "/")) continue;
      for (const RankSimulation& rank : ranks_) {
        const double busy = in_seconds(rank.uses()[i].busy);
        if (seconds > 0) of_role.busy.mean += mean(busy / seconds, plan_.owners());
      }
    }
    of_role.busy.mean = std::min(1.0, of_role.busy.mean);
    of_role.busy.least = of_role.busy.most = of_role.busy.mean;
    return of_role;
  }

  static SimulationResult::Carried carried(const Carried& carried) {
    return {.bytes = static_cast<double>(carried.bytes), .seconds = in_seconds(carried.ns)};
  }

  SimulationResult::Share share(int64_t RankSimulation::RankUse::*part, double seconds, int first, int count) const {
    SimulationResult::Share share{.least = 1};
    for (int rank = first; rank < first + count; ++rank) {
      const int64_t ns = ranks_[static_cast<size_t>(rank)].use().*part;
      const double of_rank = seconds > 0 ? std::min(1.0, in_seconds(ns) / seconds) : 0;
      share = {std::min(share.least, of_rank), share.mean + mean(of_rank, count), std::max(share.most, of_rank)};
    }
    return share;
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
  std::vector<uint8_t> at_work_;  // likewise, with roles: some executor works
  int samplers_at_work_ = 0, trainers_at_work_ = 0;
  int64_t both_at_work_ns_ = 0;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;  // some of them outdated
};

}  // namespace

SimulationResult simulate(const Plan& plan, const Costs& costs, std::vector<WorkObserver*> observers,
                          const std::function<void(int64_t)>& on_iterations) {
  return Simulation(plan, costs, std::move(observers)).run(on_iterations);
}

}  // namespace sluice::engine
