#include "engine/simulation/simulation.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/observe/engine_metrics.h"
#include "engine/observe/monitor.h"
#include "engine/schedule/driver.h"
#include "engine/simulation/simulated_nodes.h"
#include "engine/simulation/timeline.h"
#include "engine/simulation/virtual_executor.h"

namespace sluice::engine {
namespace {

constexpr size_t kParts = 60;
constexpr double kSecondsPerNs = 1e-9;

/// One simulation, and what is noted down while it goes on.
class Simulation {
 public:
  Simulation(const Plan& plan, const Costs& costs, std::vector<WorkObserver*> observers)
      : plan_(plan),
        model_(plan, costs),
        simulated_(make_simulated_workload(plan, costs)),
        driver_(plan, {.workload = std::move(simulated_.workload),
                       .clock = clock_,
                       .reductions = reductions_,
                       .observers = std::move(observers),
                       .on_iteration = [this](const IterationReport& report) { add(report); }}) {
    for (size_t i = 0; i < plan.executors.size(); ++i) {
      executors_.push_back(std::make_unique<VirtualExecutor>(
          VirtualExecutor::Parts{.index = static_cast<int>(i),
                                 .activity = driver_.activity(),
                                 .clock = clock_,
                                 .costs = model_,
                                 .next_step = [this](int path) { return simulated_.next_step[static_cast<size_t>(path)](); },
                                 .gap_ns = std::llround(costs.gap_us * 1e3)}));
      result_.executors.push_back({.name = plan.executors[i].name, .threads = plan.executors[i].threads});
    }
  }

  SimulationResult run() {
    std::vector<Executor*> places;
    for (const auto& executor : executors_) places.push_back(executor.get());
    driver_.start(places);
    run_to_the_end(executors_, clock_, [this](int64_t begin_ns, int64_t end_ns) { pass(begin_ns, end_ns); });
    finish();
    driver_.forget_executors();
    driver_.state().failure.rethrow();
    return std::move(result_);
  }

 private:
  void pass(int64_t begin_ns, int64_t end_ns) {
    if (std::ranges::any_of(executors_, [](const auto& e) { return e->works(); })) last_work_ns_ = end_ns;
    in_flight_.add(begin_ns, end_ns, static_cast<double>(driver_.state().tokens_in_flight()));
    const double seconds = static_cast<double>(end_ns - begin_ns) * kSecondsPerNs;
    for (size_t i = 0; i < executors_.size(); ++i) {
      SimulationResult::Executor& use = result_.executors[i];
      switch (executors_[i]->state()) {
        case VirtualExecutor::State::kWorks:
        case VirtualExecutor::State::kSteps:
          use.busy_seconds += seconds;
          break;
        case VirtualExecutor::State::kPauses:
          use.gap_seconds += seconds;
          break;
        case VirtualExecutor::State::kIdle:
          idle_seconds(use, driver_.idle_reason(static_cast<int>(i))) += seconds;
          break;
      }
    }
  }

  static double& idle_seconds(SimulationResult::Executor& use, Driver::Idle reason) {
    switch (reason) {
      case Driver::Idle::kNoCredit:
        return use.no_credit_seconds;
      case Driver::Idle::kNoWeights:
        return use.no_weights_seconds;
      case Driver::Idle::kNoInput:
        break;
    }
    return use.no_input_seconds;
  }

  void add(const IterationReport& report) {
    const auto metric = [&](const char* name) {
      const double value = report.metric(name);
      return std::isnan(value) ? 0 : value;
    };
    ++result_.iterations;
    result_.iteration_seconds.push_back(metric(metrics::kIterationSeconds));
    result_.rollout_seconds += metric(metrics::kRolloutSeconds);
    result_.train_seconds += metric(metrics::kTrainSeconds);
    result_.overlap_seconds += metric(metrics::kOverlapSeconds);
    result_.tail_seconds += metric(metrics::kTailSeconds);
    result_.tokens += static_cast<int64_t>(metric(metrics::kTokens));
    result_.sampled_tokens += static_cast<int64_t>(metric(metrics::kSampledTokens) + metric(metrics::kActionTokens));
  }

  void finish() {
    const RunStatus status = driver_.status();
    result_.seconds = static_cast<double>(last_work_ns_) * kSecondsPerNs;
    const BusySeconds rest = driver_.activity().take();
    result_.rollout_seconds += rest.rollout;
    result_.train_seconds += rest.train;
    result_.overlap_seconds += rest.overlap;
    for (size_t i = 0; i < plan_.nodes.size(); ++i) {
      if (plan_.is_inside_rollout(static_cast<int>(i))) continue;
      const RunStatus::Node& node = status.nodes[i];
      result_.nodes.push_back({node.name, node.executor, node.micro_batches, node.tokens, node.busy_seconds});
    }
    result_.budget = status.budget;
    result_.tokens_in_flight_peak = status.tokens_in_flight_peak;
    result_.tokens_in_flight = in_flight_.means(kParts);
    result_.column_bytes_peak = status.column_bytes_peak;
    result_.notes = model_.notes();
    if (driver_.pending().count() > 0 && !driver_.state().stopping()) result_.stall = stall(status);
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
  CostModel model_;
  OneProcess reductions_;
  SimulatedWorkload simulated_;
  Driver driver_;
  std::vector<std::unique_ptr<VirtualExecutor>> executors_;
  Timeline in_flight_;
  int64_t last_work_ns_ = 0;
  SimulationResult result_;
};

}  // namespace

SimulationResult simulate(const Plan& plan, const Costs& costs, std::vector<WorkObserver*> observers) {
  return Simulation(plan, costs, std::move(observers)).run();
}

}  // namespace sluice::engine
