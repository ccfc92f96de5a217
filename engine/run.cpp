#include "engine/run.h"

#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <fstream>
#include <mutex>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "engine/event_file.h"
#include "engine/flow_graph.h"
#include "engine/intake.h"
#include "engine/run_state.h"
#include "engine/workload.h"

namespace sluice::engine {
namespace {

int64_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  int64_t size = 0, resident = 0;
  statm >> size >> resident;
  return resident * ::sysconf(_SC_PAGESIZE);
}

int64_t peak_resident_bytes() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss * 1024;
}

std::vector<std::string> names_of(const std::vector<PlanExecutor>& executors) {
  std::vector<std::string> names;
  for (const PlanExecutor& executor : executors) names.push_back(executor.name);
  return names;
}

ColumnSlots slots_of(const Plan& plan) {
  ColumnSlots slots;
  for (const PlanColumn& column : plan.columns) slots.push_back(column.spec);
  return slots;
}

std::map<std::string, std::shared_ptr<Model>> trained_models(const Plan& plan, const Workload& workload) {
  std::map<std::string, std::shared_ptr<Model>> trained;
  for (const PlanModel& model : plan.models) {
    if (model.usage.updated) trained[model.name] = workload.models.at(model.name);
  }
  return trained;
}

template <class T>
std::unique_ptr<T> taken_as(std::unique_ptr<NodeBase>& node) {
  T* const typed = dynamic_cast<T*>(node.release());
  SLUICE_CHECK(typed != nullptr, "a node is not of the kind that its type was registered as");
  return std::unique_ptr<T>(typed);
}

// One line of metrics.jsonl. JSON has no NaN: null.
std::string line_of(const IterationReport& report) {
  Json line;
  for (const auto& [name, value] : report.figures) {
    const bool whole = std::abs(value) < 1e15 && value == std::floor(value);
    if (!std::isfinite(value)) line[name] = nullptr;
    else if (whole) line[name] = static_cast<int64_t>(value);
    else line[name] = value;
  }
  return line.dump() + "\n";
}

}  // namespace

struct Run::Impl {
  Impl(const Plan& plan_, RunOptions options_);

  void drive();
  Intake::Parts intake_parts();
  void set_intake_executor(Executor* executor);
  void notify_intake();
  void let_everything_end();
  void close_iteration(IterationReport& report);
  void report_iteration(const IterationReport& report);

  const Plan& plan;
  const RunOptions options;
  Reducer reducer;
  Workload workload;
  std::unique_ptr<TraceWriter> trace;  // null: no run folder
  std::optional<OutputFile> metrics_file;
  std::optional<EventFile> event_file;
  std::chrono::steady_clock::time_point last_report = std::chrono::steady_clock::now();
  RunState state;
  std::vector<std::unique_ptr<NodeRunner>> runners;
  std::vector<std::unique_ptr<Executor>> executors;  // alive while drive() runs
  std::mutex notify_mutex;
  Executor* intake_executor = nullptr;               // null outside drive()
};

Run::Impl::Impl(const Plan& plan_, RunOptions options_)
    : plan(plan_),
      options(std::move(options_)),
      workload(make_workload(plan, options.folder, reducer)),
      trace(options.folder.empty() ? nullptr : std::make_unique<TraceWriter>(options.folder / "trace.json", names_of(plan.executors))),
      state{.plan = plan,
            .slots = slots_of(plan),
            .columns = {},
            .budget = TokenBudget(plan.budget.tokens_in_flight, [this] { notify_intake(); }),
            .gate = VersionGate(plan.rollout_waits_for_versions(), plan.schedule.policy_lag, [this] { notify_intake(); }),
            .activity = Activity(plan.executors.size(), trace.get()),
            .failure = FailureSlot([this] { let_everything_end(); }),
            .log = IterationLog(plan.nodes.size(), [this](IterationReport& report) { close_iteration(report); },
                                [this](const IterationReport& report) { report_iteration(report); }),
            .checkpointer = Checkpointer(options.folder, plan.checkpoint.every_iterations, trained_models(plan, workload))} {
  for (const PlanModel& model : plan.models) {
    if (model.usage.updated) state.trained[model.name];
  }
  if (!options.folder.empty()) metrics_file.emplace(options.folder / "metrics.jsonl", OutputFile::Mode::kAppend);
  if (!options.folder.empty()) event_file.emplace(options.folder);
  runners.resize(plan.nodes.size());
  for (size_t i = 0; i < plan.nodes.size(); ++i) {
    if (plan.nodes[i].type->kind != NodeKind::kOrdinary) continue;
    Workload::Part& part = workload.parts[i];
    runners[i] = std::make_unique<NodeRunner>(state, static_cast<int>(i), taken_as<Node>(part.node), std::move(part.metrics), reducer);
  }
}

// The figures that belong to the whole run, in front of those of the nodes.
void Run::Impl::close_iteration(IterationReport& report) {
  const int64_t version = state.gate.version_for(report.iteration);
  const BusySeconds busy = state.activity.take();
  const auto now = std::chrono::steady_clock::now();
  const double seconds = std::chrono::duration<double>(now - std::exchange(last_report, now)).count();
  MetricRow figures{{"iteration", report.iteration}, {"policy_version", version}, {"policy_lag", state.gate.lag_of(report.iteration)}};
  figures.insert(figures.end(), report.figures.begin(), report.figures.end());
  figures.insert(figures.end(), {{"rollout_seconds", busy.rollout},
                                 {"train_seconds", busy.train},
                                 {"overlap_seconds", busy.overlap},
                                 {"iteration_seconds", seconds},
                                 {"tokens_in_flight_max", state.budget.take_peak()},
                                 {"column_bytes_max", state.columns.take_peak()},
                                 {"resident_bytes", resident_bytes()}});
  report.figures = std::move(figures);
}

void Run::Impl::report_iteration(const IterationReport& report) {
  if (metrics_file) metrics_file->write(line_of(report));
  if (event_file) event_file->scalars(report.iteration, wall_clock_seconds(), report.figures);
  if (options.on_iteration) options.on_iteration(report);
}

void Run::Impl::drive() {
  for (const PlanExecutor& executor : plan.executors) {
    executors.push_back(std::make_unique<Executor>(executor.name, [this, threads = executor.threads] {
      if (options.on_executor_start) options.on_executor_start(threads);
    }));
  }
  FlowGraph graph(plan, runners, executors);
  Intake intake(state, intake_parts(), reducer, [&graph](Packet packet) { graph.emit(std::move(packet)); },
                [&graph] { graph.release(); });
  Executor& executor = *executors[static_cast<size_t>(executor_index(plan, plan.nodes[static_cast<size_t>(plan.source)].executor))];
  executor.set_stepper(&intake);
  set_intake_executor(&executor);
  graph.reserve();
  notify_intake();
  graph.wait();
  set_intake_executor(nullptr);
  executors.clear();  // joins the threads before what they work on goes
}

Intake::Parts Run::Impl::intake_parts() {
  Intake::Parts parts;
  Workload::Part& source = workload.parts[static_cast<size_t>(plan.source)];
  parts.source = taken_as<Source>(source.node);
  parts.source_metrics = std::move(source.metrics);
  if (plan.rollout) {
    Workload::Part& rollout = workload.parts[static_cast<size_t>(*plan.rollout)];
    parts.rollout = taken_as<Rollout>(rollout.node);
    parts.rollout_metrics = std::move(rollout.metrics);
  }
  return parts;
}

void Run::Impl::set_intake_executor(Executor* executor) {
  const std::lock_guard lock(notify_mutex);
  intake_executor = executor;
}

void Run::Impl::notify_intake() {
  const std::lock_guard lock(notify_mutex);
  if (intake_executor != nullptr) intake_executor->notify();
}

// After a failure: what waits for another node is handed to its executor, which drops it.
void Run::Impl::let_everything_end() {
  state.gate.published().abandon();
  for (auto& [model, milestone] : state.trained) milestone.abandon();
  notify_intake();
}

Run::Run(const Plan& plan, RunOptions options) : impl_(std::make_unique<Impl>(plan, std::move(options))) {}

Run::~Run() = default;

RunSummary Run::execute() {
  Impl& impl = *impl_;
  const auto start = std::chrono::steady_clock::now();
  RunSummary summary;
  impl.last_report = start;
  impl.drive();
  try {
    if (impl.trace) impl.trace->close();
    impl.state.failure.rethrow();
    impl.state.checkpointer.save_all();
    if (impl.metrics_file) impl.metrics_file->close();
    if (impl.event_file) impl.event_file->close();
    summary.end = impl.state.interrupted ? RunEnd::kInterrupted : RunEnd::kDone;
  } catch (...) {
    summary.end = RunEnd::kFailed;
    summary.error = std::current_exception();
  }
  summary.iterations = impl.state.log.reported();
  summary.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  summary.peak_bytes = peak_resident_bytes();
  summary.last_checkpoint = impl.state.checkpointer.last();
  return summary;
}

void Run::interrupt() {
  impl_->state.interrupted = true;
  impl_->notify_intake();
}

RunStatus Run::status() const {
  RunStatus status;
  status.iterations_done = impl_->state.log.reported();
  status.tokens_in_flight = impl_->state.budget.in_flight();
  const std::vector<std::string> working_on = impl_->state.activity.current();
  for (size_t i = 0; i < working_on.size(); ++i) {
    status.executors.push_back({.name = impl_->plan.executors[i].name, .threads = impl_->plan.executors[i].threads, .working_on = working_on[i]});
  }
  return status;
}

}  // namespace sluice::engine
