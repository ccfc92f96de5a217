#include "engine/simulation/rank_simulation.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/observe/engine_metrics.h"
#include "engine/simulation/simulated_time.h"
#include "engine/simulation/simulated_weights.h"

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

/// A model that this rank samples from and others train: it has nothing but versions that come.
class SimulatedReceivedModel final : public Model {
 public:
  SimulatedReceivedModel(SimulatedWeights& weights, int rank, std::string name)
      : weights_(weights), rank_(rank), name_(std::move(name)) {}

  void receive_version(int64_t version, VersionReceived done) override {
    weights_.receive(rank_, name_, version, [done = std::move(done), version] { done({.published = {.version = version}}); });
  }
  void take_snapshot(VersionRange, CheckpointCopy) override {}
  void write_snapshot(const std::filesystem::path&, FileSystem&) override {}
  void restore(const std::filesystem::path&, VersionRange) override {}

 private:
  SimulatedWeights& weights_;
  const int rank_;
  const std::string name_;
};

Workload workload_of_rank(const Plan& plan, Workload workload, SimulatedNetwork& network, int rank) {
  if (plan.scheduling_ranks() == 1) return workload;
  for (const PlanModel& model : plan.models) {
    const std::optional<ModelUsage> usage = plan.usage_on(rank, model);
    if (!usage) continue;
    if (usage->updated && model.facts.trainable)
      workload.models[model.name] = std::make_shared<SimulatedModel>(network, rank, model.name);
    if (usage->received)
      workload.models[model.name] = std::make_shared<SimulatedReceivedModel>(network.weights(), rank, model.name);
  }
  return workload;
}

// What a node that publishes does at its end, on a rank that trains for others.
std::function<void(const std::string&, int64_t)> publisher_of_rank(const Plan& plan, SimulatedNetwork& network, int rank) {
  return [&plan, &network, rank](const std::string& model, int64_t version) {
    const PlanModel* const of = plan.find_model(model);
    const std::optional<ModelUsage> usage = of == nullptr ? std::nullopt : plan.usage_on(rank, *of);
    if (usage && usage->sent) network.weights().publish(model, version);
  };
}

}  // namespace

RankSimulation::RankSimulation(const Plan& plan, const Costs& costs, const VirtualClock& clock, SimulatedNetwork& network,
                               int rank, std::vector<WorkObserver*> observers)
    : plan_(plan),
      rank_(rank),
      clock_(clock),
      waits_(network.waits(rank)),
      costs_(plan, costs, rank),
      simulated_(
          make_simulated_workload(plan, costs, world_of(plan, network.of_rank(rank)), publisher_of_rank(plan, network, rank))),
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
                               .gap_ns = simulated_ns(costs.gap_us * 1e3)}));
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
  if (works()) {
    last_work_ns_ = now;
    use_.busy += ns;
  } else if (int64_t RankUse::*const part = waited()) {
    use_.*part += ns;
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

// What ranks of a role of their own compute it only waits for.
bool RankSimulation::works() const { return some_executor_works(/*forward=*/false); }
bool RankSimulation::waits_for_answers() const { return some_executor_works(/*forward=*/true); }

bool RankSimulation::some_executor_works(bool forward) const {
  for (size_t i = 0; i < executors_.size(); ++i) {
    if (executors_[i]->works() && plan_.is_forward(plan_.executors[i].name) == forward) return true;
  }
  return false;
}

// What it waits for while none works. With roles the numbers of the last iteration may still be on their way, or others not
// come to them, while a rank waits for its next work: so what keeps that counts first.
int64_t RankSimulation::RankUse::*RankSimulation::waited() const {
  if (waits_for_answers()) return &RankUse::for_others;
  if (plan_.has_roles()) {
    const Driver::Idle reason = driver_.idle_reason();
    if (!plan_.trains(rank_) && reason == Driver::Idle::kNoWeights)
      return waits_.weights > 0 ? &RankUse::for_network : &RankUse::for_weights;
    if (waits_.columns > 0) return &RankUse::for_network;
    if (plan_.trains(rank_) && waits_.of_nodes > 0) return &RankUse::for_others;
    if (waits_.for_network == 0 && (reason == Driver::Idle::kNoGroups || reason == Driver::Idle::kNoCredit))
      return &RankUse::for_groups;
  }
  if (waits_.for_others > 0) return &RankUse::for_others;
  return waits_.for_network > 0 ? &RankUse::for_network : nullptr;
}

int64_t& RankSimulation::idle_time(Use& use, Driver::Idle reason) const {
  switch (reason) {
    case Driver::Idle::kNoCredit:
      return use.no_credit;
    case Driver::Idle::kNoWeights:
      return use.no_weights;
    case Driver::Idle::kNoInput:
    case Driver::Idle::kNoGroups:
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
  rest_ = driver_.activity().take();
}

}  // namespace sluice::engine
