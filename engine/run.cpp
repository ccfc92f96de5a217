#include "engine/run.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/strings.h"
#include "engine/checkpointer.h"
#include "engine/cost_recorder.h"
#include "engine/driver.h"
#include "engine/event_file.h"
#include "engine/monitor.h"
#include "engine/out_of_memory.h"
#include "engine/resume.h"
#include "engine/thread_executor.h"
#include "engine/trace.h"
#include "engine/trace_cut.h"

namespace sluice::engine {
namespace {

// How long the nodes that do not hang may take to end their work when one does, and all of them when one has failed.
constexpr auto kGraceAfterStall = std::chrono::seconds(3);
constexpr auto kGraceAfterFailure = std::chrono::seconds(8);

// How long a checkpoint that is being written may take to be on the disk when the run has failed: beside a node that hangs, and
// else.
constexpr auto kLastWriteAfterStall = std::chrono::seconds(4), kLastWrite = std::chrono::seconds(3600);

// How often a run that is driven looks at whether it has been interrupted or has failed.
constexpr auto kLook = std::chrono::milliseconds(50);

SavedModels saved_models(const Plan& plan, const Workload& workload) {
  SavedModels saved;
  for (const PlanModel& model : plan.models) {
    if (model.usage.updated)
      saved[model.name] = {.model = workload.models.at(model.name), .older_versions = model.usage.saved_versions};
  }
  return saved;
}

// Which figures there are is known once an iteration has them all; a misspelt one would never be the best.
void refuse_unknown_figure(const CheckpointSettings& settings, const IterationReport& report) {
  std::vector<std::string> names;
  for (const auto& [name, value] : report.figures) names.push_back(name);
  if (!settings.keep_best || std::ranges::find(names, *settings.keep_best) != names.end()) return;
  const std::string near = did_you_mean(*settings.keep_best, names);
  throw UserError(
      "[checkpoint] keep_best = " + sluice::quoted(*settings.keep_best) + ": no figure of this pipeline is called so",
      near.empty() ? "the figures are those of a line of metrics.jsonl" : "did you mean " + sluice::quoted(near) + "?");
}

// One line of metrics.jsonl. JSON has no NaN: null.
std::string line_of(const IterationReport& report) {
  Json line;
  for (const auto& [name, value] : report.figures) {
    const bool whole = std::abs(value) < 1e15 && value == std::floor(value);
    if (!std::isfinite(value))
      line[name] = nullptr;
    else if (whole)
      line[name] = static_cast<int64_t>(value);
    else
      line[name] = value;
  }
  return line.dump() + "\n";
}

// An allocation that failed is told with where the memory went and what to lower.
Problem explained(Problem problem, const Plan& plan, const MemoryReport& report) {
  for (std::string& line : memory_lines(report)) problem.notes.push_back(std::move(line));
  problem.help = memory_advice(plan, report);
  return problem;
}

std::exception_ptr explained(const std::exception_ptr& error, const Plan& plan, const MemoryReport& report) {
  try {
    std::rethrow_exception(error);
  } catch (const OutOfMemory& failed) {
    return std::make_exception_ptr(OutOfMemory(explained(failed.problems().front(), plan, report)));
  } catch (...) {
    return error;
  }
}

const char* state_text(RunEnd end) {
  switch (end) {
    case RunEnd::kDone:
      return "done";
    case RunEnd::kInterrupted:
      return "interrupted";
    case RunEnd::kFailed:
      return "failed";
    case RunEnd::kStalled:
      return "stalled";
  }
  return "?";
}

}  // namespace

struct Run::Impl {
  Impl(const Plan& plan_, RunOptions options_);
  ~Impl();

  void rewind();
  void judge_unusable_state(const Problems& problems);
  void warn(const std::string& warning);
  void open_files();
  void begin_checkpoints(SavedModels models);
  Driver::Parts driver_parts(Workload workload);
  void wait_for_the_end();
  std::map<std::string, int64_t> growing_files() const;
  std::vector<WorkObserver*> observers();
  void start();
  std::unique_ptr<Executor> make_executor(int index);
  void end();
  void report_iteration(const IterationReport& report);
  Workload loaded();
  void write_costs() const;
  void write_memory() const;
  void sample_memory();
  MemoryReport memory() const { return memory_report(plan.memory, meter.peaks()); }
  void stall(Problem problem);
  RunStatus status(const std::string& state);

  const Plan& plan;
  const RunOptions options;
  const SteadyClock clock;
  Reducer reducer;
  MemoryMeter meter;
  std::optional<Manifest> manifest;  // of the checkpoint that the run goes on from
  int64_t trace_begin_ns = 0;
  std::unique_ptr<TraceWriter> trace;      // null: no run folder
  std::unique_ptr<CostRecorder> recorder;  // likewise
  std::optional<OutputFile> metrics_file;  // likewise
  std::optional<EventFile> event_file;     // likewise
  std::optional<Driver> driver;
  std::optional<Checkpointer> checkpointer;                // likewise
  std::vector<std::unique_ptr<Executor>> executors;        // alive while the run is driven, and longer if a node hangs
  std::unique_ptr<Monitor> monitor;
  std::atomic<bool> stalled{false};
};

Run::Impl::Impl(const Plan& plan_, RunOptions options_) : plan(plan_), options(std::move(options_)), meter(options.tensors) {
  if (!options.resume_from.empty()) rewind();
  Workload workload = loaded();
  meter.watch(workload.models);
  SavedModels models = saved_models(plan, workload);
  if (manifest) {
    restore(workload, models, plan, options.resume_from, *manifest,
            [this](const Problems& problems) { judge_unusable_state(problems); });
  }
  if (!options.folder.empty()) {
    open_files();
    begin_checkpoints(std::move(models));
  }
  driver.emplace(plan, driver_parts(std::move(workload)));
}

// Before nodes are made, since they append to files.
void Run::Impl::rewind() {
  manifest = read_manifest(options.resume_from);
  refuse_changes(*manifest, plan, options.accept_changes);
  rewind_folder(options.folder, options.resume_from, *manifest, options.files,
                [this](const std::string& warning) { warn(warning); });
  trace_begin_ns = cut_trace(options.folder / "trace.json", manifest->iterations, options.files);
}

// Other data, which need a word, have no place where the old ones were.
void Run::Impl::judge_unusable_state(const Problems& problems) {
  if (!options.accept_changes) throw UserError(problems);
  for (const Problem& problem : problems) warn(problem.message + "; it begins afresh");
}

void Run::Impl::warn(const std::string& warning) {
  if (options.on_warning) options.on_warning(warning);
}

void Run::Impl::open_files() {
  metrics_file.emplace(options.folder / "metrics.jsonl", OutputFile::Mode::kAppend);
  event_file.emplace(options.folder);
  recorder = std::make_unique<CostRecorder>(plan);
  trace = std::make_unique<TraceWriter>(options.folder / "trace.json", plan, trace_begin_ns,
                                        [this] { driver->state().failure.capture(); });
}

void Run::Impl::begin_checkpoints(SavedModels models) {
  checkpointer.emplace(Checkpointer::Parts{.plan = plan,
                                           .clock = clock,
                                           .begun = manifest ? manifest->iterations : 0,
                                           .last = options.resume_from,
                                           .writer = {.plan = plan,
                                                      .run_folder = options.folder,
                                                      .models = std::move(models),
                                                      .files = options.files,
                                                      .on_warning = options.on_warning},
                                           .before_write = [this] { trace->flush(); },
                                           .on_failure = [this] { driver->state().failure.capture(); }});
}

// Also the event files of earlier parts of the run, which grow no more: those that a checkpoint does not name go when one resumes
// there.
std::map<std::string, int64_t> Run::Impl::growing_files() const {
  std::map<std::string, int64_t> files = {{"metrics.jsonl", metrics_file->size()}, {event_file->name(), event_file->bytes()}};
  if (!manifest) return files;
  for (const auto& [name, bytes] : manifest->growing) {
    if (name.starts_with(kEventFilePrefix)) files.emplace(name, bytes);
  }
  return files;
}

Workload Run::Impl::loaded() {
  try {
    return make_workload(plan, options.folder, reducer);
  } catch (const std::exception& error) {
    if (!is_out_of_memory(error)) throw;
    meter.sample(0, 0, 0);
    const std::string what = error.what();
    const Problem failed{.where = {},
                         .message = "there is not enough memory to load the models and make the nodes",
                         .caret = {},
                         .notes = {what.substr(0, what.find('\n'))},
                         .help = {}};
    throw OutOfMemory(explained(failed, plan, memory()));
  }
}

Run::Impl::~Impl() {
  monitor.reset();
  end();
}

Driver::Parts Run::Impl::driver_parts(Workload workload) {
  return {.workload = std::move(workload),
          .clock = clock,
          .reducer = reducer,
          .checkpointer = checkpointer ? &*checkpointer : nullptr,
          .begun = manifest ? manifest->iterations : 0,
          .observers = observers(),
          .on_iteration = [this](const IterationReport& report) { report_iteration(report); },
          .seams = options.seams};
}

std::vector<WorkObserver*> Run::Impl::observers() {
  std::vector<WorkObserver*> all = options.observers;
  if (trace != nullptr) all.push_back(trace.get());
  if (recorder != nullptr) all.push_back(recorder.get());
  return all;
}

void Run::Impl::report_iteration(const IterationReport& report) {
  if (recorder != nullptr) recorder->reported(report);
  IterationReport whole = report;
  sample_memory();
  whole.figures.emplace_back("resident_bytes", resident_bytes());
  if (options.tensors.take_peak_bytes) whole.figures.emplace_back("tensor_bytes_max", meter.take_tensor_peak());
  if (checkpointer) {
    whole.figures.emplace_back("checkpoint_seconds", checkpointer->take_seconds());
    metrics_file->write(line_of(whole));
    event_file->scalars(whole.iteration, wall_clock_seconds(), whole.figures);
    try {
      refuse_unknown_figure(plan.checkpoint, whole);
    } catch (const UserError&) {
      driver->state().failure.capture();
    }
    checkpointer->iteration_reported(whole, growing_files());
  }
  if (options.on_iteration) options.on_iteration(whole);
}

// An executor that cannot be had fails the run before it begins.
void Run::Impl::start() {
  std::vector<Executor*> places;
  for (size_t i = 0; i < plan.executors.size(); ++i) {
    try {
      executors.push_back(make_executor(static_cast<int>(i)));
      places.push_back(executors.back().get());
    } catch (...) {
      driver->state().failure.capture("executor '" + plan.executors[i].name + "'");
    }
  }
  if (places.size() == plan.executors.size()) driver->start(places);
  monitor = std::make_unique<Monitor>(
      Monitor::Options{options.folder, plan.runtime.stall_seconds}, [this] { return status("running"); },
      [this] { return driver->state().progress(); }, [this](Problem problem) { stall(std::move(problem)); });
}

std::unique_ptr<Executor> Run::Impl::make_executor(int index) {
  const PlanExecutor& planned = plan.executors[static_cast<size_t>(index)];
  const auto on_start = [this, &planned] {
    try {
      if (options.on_executor_start) options.on_executor_start(planned.threads);
    } catch (...) {
      driver->state().failure.capture("executor '" + planned.name + "'");
    }
  };
  auto executor = std::make_unique<ThreadExecutor>(index, planned.name, driver->activity(), on_start);
  if (!options.seams.executor) return executor;
  return options.seams.executor(index, std::move(executor));
}

// Joins the threads before what they work on goes.
void Run::Impl::end() {
  driver->forget_executors();
  executors.clear();
}

// What an interrupt leaves in flight has its grace, and so has what goes on beside a node that has failed.
void Run::Impl::wait_for_the_end() {
  const auto nanoseconds = [](auto time) { return std::chrono::nanoseconds(time).count(); };
  const auto grace_ns = static_cast<int64_t>(plan.runtime.grace_seconds * 1e9);
  int64_t interrupted_ns = -1, failed_ns = -1;
  while (!driver->pending().wait_for(kLook)) {
    const int64_t now = clock.now_ns();
    if (driver->state().interrupted && interrupted_ns < 0) interrupted_ns = now;
    if (driver->state().stopping() && failed_ns < 0) {
      failed_ns = now;
      driver->let_everything_end();
    }
    if (interrupted_ns >= 0 && now - interrupted_ns >= grace_ns) driver->drop_in_flight();
    if (failed_ns >= 0 && now - failed_ns >= nanoseconds(stalled ? kGraceAfterStall : kGraceAfterFailure)) return;
  }
}

// When no work is under way any more.
void Run::Impl::write_costs() const {
  const Costs costs = recorder->costs();
  if (!costs.lengths.empty())
    write_file_atomically(options.folder / "costs.json", costs_json(costs));  // else nothing was measured
}

void Run::Impl::write_memory() const {
  if (!options.folder.empty()) write_file_atomically(options.folder / "memory.json", memory_json(memory()));
}

void Run::Impl::sample_memory() {
  const Driver::Holdings most = driver->holdings();
  meter.sample(most.column_bytes, most.pool.held, most.pool.used);
}

// On the monitor's thread. What does not hang is dropped and ends; what does is left behind, see wait_for_the_end().
void Run::Impl::stall(Problem problem) {
  stalled = true;
  try {
    throw UserError(std::move(problem));
  } catch (...) {
    driver->state().failure.capture();
  }
}

RunStatus Run::Impl::status(const std::string& state) {
  RunStatus status = driver->status();
  sample_memory();
  status.memory = memory();
  status.pipeline = plan.pipeline.name;
  status.state = state;
  status.pid = ::getpid();
  status.resident_bytes = resident_bytes();
  return status;
}

Run::Run(const Plan& plan, RunOptions options) : impl_(std::make_unique<Impl>(plan, std::move(options))) {}

Run::~Run() = default;

RunSummary Run::execute() {
  Impl& impl = *impl_;
  const int64_t start_ns = impl.clock.now_ns();
  RunSummary summary;
  impl.start();
  impl.wait_for_the_end();
  summary.hangs = impl.driver->pending().count() > 0;
  RunStatus last = impl.status("");
  if (!summary.hangs) impl.end();
  if (impl.checkpointer) impl.checkpointer->finish_writing(summary.hangs ? kLastWriteAfterStall : kLastWrite);
  try {
    impl.write_memory();
    if (impl.trace) impl.trace->close();
    impl.driver->state().failure.rethrow();
    if (impl.recorder) impl.write_costs();
    if (impl.metrics_file) impl.metrics_file->close();
    if (impl.event_file) impl.event_file->close();
    if (impl.checkpointer) impl.checkpointer->save_last();
    summary.end = impl.driver->state().interrupted ? RunEnd::kInterrupted : RunEnd::kDone;
    last.state = state_text(summary.end);
    impl.monitor->finish(std::move(last));
  } catch (...) {
    summary.end = impl.stalled ? RunEnd::kStalled : RunEnd::kFailed;
    summary.error = explained(std::current_exception(), impl.plan, impl.memory());
    last.state = state_text(summary.end);
    try {
      impl.monitor->finish(std::move(last));
    } catch (const UserError&) {
      // The first failure is the one to tell.
    }
  }
  summary.iterations = impl.driver->state().log.reported();
  summary.seconds = static_cast<double>(impl.clock.now_ns() - start_ns) * 1e-9;
  summary.memory = impl.memory();
  if (impl.checkpointer) summary.last_checkpoint = impl.checkpointer->last();
  return summary;
}

void Run::interrupt() { impl_->driver->interrupt(); }

void Run::save_now() {
  if (impl_->checkpointer) impl_->checkpointer->save_now();
}

RunStatus Run::status() const { return impl_->status("running"); }

}  // namespace sluice::engine
