#include "engine/simulation/rank_simulation.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/observe/engine_metrics.h"

namespace sluice::engine {
namespace {

/// A model that is trained on several ranks: it has nothing but gradients that take time to be added up.
class SimulatedModel final : public Model {
 public:
  SimulatedModel(SimulatedNetwork& network, int rank, std::string name)
      : network_(network), rank_(rank), name_(std::move(name)) {}

  bool add_up_slots() override { return true; }
  void add_up_ranks(const std::function<void()>& done) override { network_.sum_gradients(rank_, name_, done); }
  void take_snapshot(VersionRange, CheckpointCopy) override {}
  void write_snapshot(const std::filesystem::path&, FileSystem&) override {}
  void restore(const std::filesystem::path&, VersionRange) override {}

 private:
  SimulatedNetwork& network_;
  const int rank_;
  const std::string name_;
};

Workload workload_of_rank(const Plan& plan, Workload workload, SimulatedNetwork& network, int rank) {
  if (plan.ranks == 1) return workload;
  for (const PlanModel& model : plan.models) {
    if (model.usage.updated) workload.models[model.name] = std::make_shared<SimulatedModel>(network, rank, model.name);
  }
  return workload;
}

}  // namespace

RankSimulation::RankSimulation(const Plan& plan, const Costs& costs, const VirtualClock& clock, SimulatedNetwork& network,
                               int rank, std::vector<WorkObserver*> observers)
    : clock_(clock),
      waits_(network.waits(rank)),
      costs_(plan, costs),
      simulated_(make_simulated_workload(plan, costs, world_of(plan, network.of_rank(rank)))),
      driver_(plan, {.workload = workload_of_rank(plan, std::move(simulated_.workload), network, rank),
                     .clock = clock_,
                     .reductions = network.of_rank(rank),
                     .links = plan.shares_making() ? std::optional(network.links(rank)) : std::nullopt,
                     .observers = std::move(observers),
                     .on_iteration = [this](const IterationReport& report) { add(report); }}),
      uses_(plan.executors.size()) {
  for (size_t i = 0; i < plan.executors.size(); ++i) {
    executors_.push_back(std::make_unique<VirtualExecutor>(
        VirtualExecutor::Parts{.index = static_cast<int>(i),
                               .activity = driver_.activity(),
                               .clock = clock_,
                               .costs = costs_,
                               .next_step = [this](int path) { return simulated_.next_step[static_cast<size_t>(path)](); },
                               .gap_ns = std::llround(costs.gap_us * 1e3)}));
  }
  if (rank == 0) in_flight_.emplace();
}

RankSimulation::~RankSimulation() { driver_.forget_executors(); }

void RankSimulation::start() {
  std::vector<Executor*> places;
  for (const auto& executor : executors_) places.push_back(executor.get());
  driver_.start(places);
}

void RankSimulation::begin() {
  for (const auto& executor : executors_) {
    if (executor->state() == VirtualExecutor::State::kIdle) executor->begin();
  }
}

int64_t RankSimulation::next_ns() const {
  int64_t next = kNever;
  for (const auto& executor : executors_) {
    if (executor->state() != VirtualExecutor::State::kIdle) next = std::min(next, executor->until_ns());
  }
  return next;
}

void RankSimulation::end() {
  for (const auto& executor : executors_) {
    if (executor->state() != VirtualExecutor::State::kIdle && executor->until_ns() == clock_.now_ns()) executor->end();
  }
}

void RankSimulation::settle() {
  const int64_t now = clock_.now_ns(), ns = now - std::exchange(settled_ns_, now);
  if (ns == 0) return;
  if (std::ranges::any_of(executors_, [](const auto& e) { return e->works(); })) {
    last_work_ns_ = now;
    use_.busy += ns;
  } else if (waits_.for_others > 0) {
    use_.for_others += ns;
  } else if (waits_.for_network > 0) {
    use_.for_network += ns;
  }
  if (in_flight_) in_flight_->add(now - ns, now, static_cast<double>(driver_.state().tokens_in_flight()));
  for (size_t i = 0; i < executors_.size(); ++i) {
    switch (executors_[i]->state()) {
      case VirtualExecutor::State::kWorks:
      case VirtualExecutor::State::kSteps:
        uses_[i].busy += ns;
        break;
      case VirtualExecutor::State::kPauses:
        uses_[i].gap += ns;
        break;
      case VirtualExecutor::State::kIdle:
        idle_time(uses_[i], driver_.idle_reason(static_cast<int>(i))) += ns;
        break;
    }
  }
}

int64_t& RankSimulation::idle_time(Use& use, Driver::Idle reason) const {
  switch (reason) {
    case Driver::Idle::kNoCredit:
      return use.no_credit;
    case Driver::Idle::kNoWeights:
      return use.no_weights;
    case Driver::Idle::kNoInput:
      break;
  }
  return use.no_input;
}

void RankSimulation::add(const IterationReport& report) {
  const auto metric = [&](const char* name) {
    const double value = report.metric(name);
    return std::isnan(value) ? 0 : value;
  };
  ++reported_.iterations;
  reported_.iteration_seconds.push_back(metric(metrics::kIterationSeconds));
  reported_.rollout_seconds += metric(metrics::kRolloutSeconds);
  reported_.train_seconds += metric(metrics::kTrainSeconds);
  reported_.overlap_seconds += metric(metrics::kOverlapSeconds);
  reported_.tail_seconds += metric(metrics::kTailSeconds);
  reported_.tokens += static_cast<int64_t>(metric(metrics::kTokens));
  reported_.sampled_tokens += static_cast<int64_t>(metric(metrics::kSampledTokens) + metric(metrics::kActionTokens));
}

void RankSimulation::finish() {
  settle();
  const BusySeconds rest = driver_.activity().take();
  reported_.rollout_seconds += rest.rollout;
  reported_.train_seconds += rest.train;
  reported_.overlap_seconds += rest.overlap;
}

}  // namespace sluice::engine
