#include "engine/run/run.h"

#include <unistd.h>

#include <chrono>
#include <map>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>

#include "base/confined_file_system.h"
#include "base/error.h"
#include "base/file.h"
#include "base/folder.h"
#include "base/path_kind.h"
#include "base/printable.h"
#include "engine/checkpoint/checkpoint_folder.h"
#include "engine/checkpoint/checkpoint_room.h"
#include "engine/checkpoint/checkpointer.h"
#include "engine/contract/run_folder.h"
#include "engine/memory/out_of_memory.h"
#include "engine/observe/engine_metrics.h"
#include "engine/observe/monitor.h"
#include "engine/observe/trace_cut.h"
#include "engine/run/patience.h"
#include "engine/run/resume.h"
#include "engine/run/run_files.h"
#include "engine/run/told_by_rank.h"
#include "engine/schedule/driver.h"
#include "engine/schedule/thread_executor.h"

namespace sluice::engine {
namespace {

// How long a checkpoint that is being written may take to be on the disk when the run has failed: beside a node that hangs, and
// else.
constexpr auto kLastWriteAfterStall = std::chrono::seconds(4), kLastWrite = Patience::kForWriting;

// How often a run that is driven looks at whether it has been interrupted or has failed.
constexpr auto kLook = std::chrono::milliseconds(50);

}  // namespace

struct Run::Impl {
  Impl(const Plan& plan_, RunOptions options_);
  ~Impl();

  bool writes() const { return !options.folder.empty() && options.writes_folder; }
  void rewind();
  void judge_unusable_state(const Problems& problems);
  void warn(const std::string& warning);
  void warn_of_file(const std::string& warning);
  void open_files();
  void begin_checkpoints(SavedModels models);
  Driver::Parts driver_parts(Workload workload);
  std::optional<StopRule> stop_rule() const;
  void wait_for_the_end();
  bool leaves_a_call_behind();
  void tell_last(RunStatus last);
  std::vector<WorkObserver*> observers();
  std::string tell();
  void hear(const std::string& told);
  std::string name_of_rank(int rank) const;
  void start();
  std::unique_ptr<Executor> make_executor(int index);
  void end();
  MetricRow measured_memory();
  void report_iteration(const IterationReport& report);
  Workload loaded();
  void complete_files();
  void sample_memory();
  MemoryReport memory() const { return memory_report(plan.memory, meter.peaks(), plan.devices); }
  void stall(Problem problem);
  RunStatus status(const std::string& state);
  int64_t progress();
  bool holds_up() const { return (checkpointer && checkpointer->holds_up()) || (own_parts && own_parts->holds_up()); }

  const Plan& plan;
  const RunOptions options;
  ConfinedFileSystem confined;  // through which all of the run's files are written
  const RunFolder folder;
  const SteadyClock clock;
  OneProcess one_process;
  Reductions& reductions;
  MemoryMeter meter;
  std::optional<Manifest> manifest;      // of the checkpoint that the run goes on from
  std::optional<int64_t> first_version;  // where this rank has come into a run that goes on
  int64_t trace_begin_ns = 0;
  std::vector<std::shared_ptr<Model>> shared_models;  // whose passes other ranks compute with this one
  std::optional<RunFiles> files;                      // nothing: no run folder
  std::optional<RankTrace> rank_trace;                // of another rank than 0: what it adds to the files of rank 0
  std::optional<CostRecorder> rank_costs;             // likewise, with roles
  std::optional<Driver> driver;
  std::optional<Checkpointer> checkpointer;          // nothing: no run folder, or another rank's
  std::optional<OwnParts> own_parts;                 // likewise: what this rank saves for that one
  std::vector<std::unique_ptr<Executor>> executors;  // alive while the run is driven, and longer if a node hangs
  std::unique_ptr<Monitor> monitor;
  std::atomic<bool> stalled{false};
  std::atomic<bool> failed_outside{false};       // see Run::fail()
  std::atomic<bool> nodes_ended{false};          // and their executors with them
  int64_t looks_while_saved = 0;                 // the monitor's
  std::mutex memory_mutex;                       // guards what follows
  std::map<int, MemoryReport> memory_of_others;  // by rank, as each told last; of rank 0
};

Run::Impl::Impl(const Plan& plan_, RunOptions options_)
    : plan(plan_),
      options(std::move(options_)),
      confined(writable_folders(plan, options.folder, options.writes_folder), options.files),
      folder{.path = options.folder, .files = &confined, .is_ours = options.writes_folder},
      reductions(options.reductions != nullptr ? *options.reductions : one_process),
      meter(options.tensors) {
  if (writes() && plan.checkpoint.folder) make_folders(*plan.checkpoint.folder, options.files);
  if (!options.resume_from.empty()) rewind();
  Workload workload = loaded();
  meter.watch(plan, workload.models);
  if (options.passes != nullptr) {
    for (const auto& [name, model] : workload.models) shared_models.push_back(model);
  }
  SavedModels models = trained_models(plan, workload.models);
  if (manifest) {
    restore(workload, models, plan, options.resume_from, *manifest,
            [this](const Problems& problems) { judge_unusable_state(problems); });
  }
  if (!plan.trains(reductions.world().rank)) models.clear();  // those that train them save them
  if (writes()) {
    open_files();
    begin_checkpoints(std::move(models));
  } else if (!options.folder.empty()) {
    if (plan.trains(reductions.world().rank))
      own_parts.emplace(OwnParts::Parts{plan, options.folder, std::move(models), confined, reductions});
    rank_trace.emplace(reductions.world().rank, plan.executors.size(), clock.begin_ns());
    if (!plan.roles.empty()) rank_costs.emplace(plan, reductions.world().rank);
  }
  if (options.comes_in) first_version = options.comes_in();
  driver.emplace(plan, driver_parts(std::move(workload)));
}

// Before nodes are made, since they append to files.
void Run::Impl::rewind() {
  manifest = read_manifest(options.resume_from);
  refuse_changes(*manifest, plan, options.accept_changes);
  if (!writes()) return;
  const auto tell = [this](const std::string& warning) { warn(warning); };
  manifest->growing = known_growing_files(*manifest, plan, options.accept_changes, tell);
  for (const auto& [name, bytes] : std::map(manifest->growing)) {
    if (!is_gone_event_file(options.folder, name)) continue;
    warn((options.folder / name).string() + " is gone, and with it what TensorBoard shows of what came before");
    manifest->growing.erase(name);
  }
  rewind_folder({.folder = folder,
                 .checkpoints = checkpoints_folder(options.folder, plan.checkpoint),
                 .checkpoint = options.resume_from,
                 .iterations = manifest->iterations,
                 .growing = manifest->growing},
                tell);
  trace_begin_ns = cut_trace(options.folder / kTraceFile, manifest->iterations, confined);
}

// Other data, which need a word, have no place where the old ones were.
void Run::Impl::judge_unusable_state(const Problems& problems) {
  if (!options.accept_changes) throw UserError(problems);
  for (const Problem& problem : problems) warn(problem.message + "; it begins afresh");
}

void Run::Impl::warn(const std::string& warning) {
  if (options.on_warning) options.on_warning(warning);
}

// The first failure is the one to tell.
void Run::Impl::warn_of_file(const std::string& warning) {
  if (!driver || !driver->state().stopping()) warn(warning);
}

void Run::Impl::open_files() {
  files.emplace(RunFiles::Parts{.plan = plan,
                                .folder = folder,
                                .trace_begin_ns = trace_begin_ns,
                                .grown = manifest ? manifest->growing : std::map<std::string, int64_t>(),
                                .on_warning = [this](const std::string& warning) { warn_of_file(warning); }});
  if (plan.ranks > 1) files->name_process_in_trace(name_of_rank(0));
}

void Run::Impl::begin_checkpoints(SavedModels models) {
  const bool saves = !manifest || manifest->iterations < plan.pipeline.iterations;
  if (const auto lack = saves ? lack_of_room(plan, options.folder) : std::nullopt) warn(*lack);
  checkpointer.emplace(Checkpointer::Parts{.plan = plan,
                                           .clock = clock,
                                           .begun = manifest ? manifest->iterations : 0,
                                           .last = options.resume_from,
                                           .reductions = reductions,
                                           .writer = {.plan = plan,
                                                      .run_folder = options.folder,
                                                      .models = std::move(models),
                                                      .files = confined,
                                                      .on_warning = options.on_warning},
                                           .before_write = [this] { files->flush_trace(); },
                                           .on_failure = [this] { driver->state().failure.capture(); }});
}

Workload Run::Impl::loaded() {
  try {
    return make_workload(plan, folder, {reductions, options.common_memory, publications_of(options.links), options.passes});
  } catch (const std::exception& error) {
    if (!is_out_of_memory(error)) throw;
    meter.sample(0, {});
    const std::string what = error.what();
    throw explained({.where = {},
                     .message = "there is not enough memory to load the models and make the nodes",
                     .caret = {},
                     .notes = {what.substr(0, what.find('\n'))},
                     .help = {}},
                    plan, memory());
  }
}

Run::Impl::~Impl() {
  monitor.reset();
  end();
}

Driver::Parts Run::Impl::driver_parts(Workload workload) {
  return {.workload = std::move(workload),
          .clock = clock,
          .reductions = reductions,
          .links = options.links,
          .checkpointer = checkpointer ? &*checkpointer : nullptr,
          .own_parts = own_parts ? &*own_parts : nullptr,
          .begun = first_version ? *first_version + plan.schedule.policy_lag
                   : manifest    ? manifest->iterations
                                 : 0,
          .first_version = first_version,
          .stop_rule = stop_rule(),
          .observers = observers(),
          .on_iteration = [this](const IterationReport& report) { report_iteration(report); },
          .measure = [this] { return measured_memory(); },
          .tell = [this] { return tell(); },
          .hear = [this](const std::string& told) { hear(told); },
          .seams = options.seams};
}

std::optional<StopRule> Run::Impl::stop_rule() const {
  if (!plan.pipeline.stop_when) return {};
  StopRule rule(*plan.pipeline.stop_when);
  if (manifest) show_past(rule, options.folder / kMetricsFile, manifest->iterations);
  return rule;
}

std::vector<WorkObserver*> Run::Impl::observers() {
  std::vector<WorkObserver*> all = options.observers;
  if (files) std::ranges::copy(files->observers(), std::back_inserter(all));
  if (rank_trace) all.push_back(&*rank_trace);
  if (rank_costs) all.push_back(&*rank_costs);
  return all;
}

// At the end of an iteration, of another rank than 0.
std::string Run::Impl::tell() {
  if (!rank_trace) return {};
  ToldByRank told{.rank = reductions.world().rank, .memory = memory()};
  if (rank_costs) told.costs = rank_costs->told();
  told.slices = rank_trace->take(options.clock_offset ? options.clock_offset() : ClockOffset{});
  return bytes_of(told);
}

void Run::Impl::hear(const std::string& text) {
  if (!files || text.empty()) return;
  ToldByRank told = told_by_rank_from(text);
  {
    const std::lock_guard lock(memory_mutex);
    memory_of_others[told.rank] = std::move(told.memory);
  }
  if (told.costs) files->add_to_costs(told.rank, *told.costs);
  if (told.slices.empty()) return;
  const RankSlices piece = rank_slices_from(told.slices);
  files->add_to_trace(piece, piece.begin_ns - clock.begin_ns(), name_of_rank(piece.rank));
}

// "rank 1 (n2, pid 4711)"
std::string Run::Impl::name_of_rank(int rank) const {
  const std::string name = "rank " + std::to_string(rank);
  const std::vector<RankSeen> ranks = options.ranks ? options.ranks() : std::vector<RankSeen>();
  const auto seen = std::ranges::find(ranks, rank, &RankSeen::rank);
  if (seen == ranks.end()) return name;
  return name + " (" + printable(seen->host) + ", pid " + std::to_string(seen->pid) + ")";
}

MetricRow Run::Impl::measured_memory() {
  sample_memory();
  MetricRow row{{metrics::kResidentBytes, resident_bytes()}};
  if (options.tensors.take_peak_bytes) row.emplace_back(metrics::kTensorBytesMax, meter.take_tensor_peak());
  return row;
}

void Run::Impl::report_iteration(const IterationReport& report) {
  IterationReport whole = report;
  if (files) {
    whole.metrics.emplace_back(metrics::kCheckpointSeconds, checkpointer->take_seconds());
    files->write(whole);
    checkpointer->iteration_reported(whole, files->lengths());
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
      Monitor::Options{clock, folder, plan.runtime.stall_seconds}, [this] { return status("running"); },
      [this] { return progress(); }, [this](Problem problem) { stall(std::move(problem)); });
}

std::unique_ptr<Executor> Run::Impl::make_executor(int index) {
  const PlanExecutor& planned = plan.executors[static_cast<size_t>(index)];
  const auto on_start = [this, &planned] {
    try {
      if (options.on_executor_start) options.on_executor_start(executor_start(plan, planned));
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
  const auto grace_ns = static_cast<int64_t>(plan.runtime.grace_seconds * 1e9);
  int64_t interrupted_ns = -1;
  std::optional<Patience> patience;  // since a failure
  while (!driver->pending().wait_for(kLook)) {
    const int64_t now = clock.now_ns();
    if (driver->is_interrupted() && interrupted_ns < 0) interrupted_ns = now;
    if (driver->state().stopping() && !patience) {
      patience.emplace();
      driver->let_everything_end();
      if (options.passes != nullptr) options.passes->abandon();
    }
    if (interrupted_ns >= 0 && now - interrupted_ns >= grace_ns) driver->drop_in_flight();
    if (patience && patience->is_over(now, stalled || failed_outside, holds_up())) return;
  }
}

// Behind the end of the run, when all is saved: a call that nobody can end would keep the program for ever.
bool Run::Impl::leaves_a_call_behind() {
  if (driver->wait_for_calls(stalled || failed_outside ? Patience::kAfterStall : Patience::kAfterFailure)) return false;
  const std::string call = driver->call_under_way();
  if (!stalled && !call.empty()) warn(call + ": it is left behind, since it has not come back");
  return !call.empty();
}

// Also of a run that has failed, of which the failure is the one to tell.
void Run::Impl::complete_files() {
  if (!files) return;
  try {
    {
      const std::lock_guard lock(memory_mutex);
      files->write_memory(memory_json(memory(), memory_of_others));
    }
    files->close();
  } catch (...) {
    driver->state().failure.capture();
  }
}

// That the file says otherwise changes nothing of the run.
void Run::Impl::tell_last(RunStatus last) {
  const std::string state = last.state;
  try {
    monitor->finish(std::move(last));
  } catch (const UserError& error) {
    warn_of_file("status.json does not say that the run is " + state + ": " + error.problems().front().message);
  }
}

void Run::Impl::sample_memory() {
  const Driver::Holdings most = driver->holdings();
  meter.sample(most.column_bytes, most.pools);
}

// On the monitor's thread. What does not hang is dropped and ends; what does is left behind, see wait_for_the_end().
void Run::Impl::stall(Problem problem) {
  stalled = true;
  if (driver->state().cut_short.failed()) return driver->state().failure.capture(driver->state().cut_short);  // which is why
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
  if (options.ranks) status.ranks = options.ranks();
  return status;
}

// A model that is written while its node waits is no stall, however slow the disk.
int64_t Run::Impl::progress() {
  if (holds_up()) ++looks_while_saved;
  return driver->work_done() + looks_while_saved;
}

Run::Run(const Plan& plan, RunOptions options) : impl_(std::make_unique<Impl>(plan, std::move(options))) {}

Run::~Run() = default;

RunSummary Run::execute() {
  Impl& impl = *impl_;
  const int64_t start_ns = impl.clock.now_ns();
  RunSummary summary;
  impl.start();
  impl.wait_for_the_end();
  impl.driver->end_waiting();
  summary.hangs = impl.driver->pending().count() > 0;
  RunStatus last = impl.status("");
  if (!summary.hangs) {
    impl.end();
    impl.nodes_ended = true;  // before failures are looked for: one that comes later abandons by itself
  }
  if (impl.checkpointer) impl.checkpointer->finish_writing(summary.hangs ? kLastWriteAfterStall : kLastWrite);
  try {
    impl.complete_files();
    impl.driver->state().failure.rethrow();
    if (impl.files) impl.files->write_costs();
    if (impl.checkpointer) impl.checkpointer->save_last();
    if (impl.own_parts) impl.own_parts->save_last();
    for (const auto& model : impl.shared_models) model->dismiss();
    const RunState& state = impl.driver->state();
    summary.end = end_of(state);
    if (summary.end == RunEnd::kCutShort) summary.error = explained(state.cut_short.error(), impl.plan, impl.memory());
  } catch (...) {
    summary.end = impl.stalled ? RunEnd::kStalled : RunEnd::kFailed;
    summary.error = explained(std::current_exception(), impl.plan, impl.memory());
  }
  last.state = state_text(summary.end);
  impl.tell_last(std::move(last));
  summary.hangs = impl.leaves_a_call_behind() || summary.hangs;
  summary.iterations = impl.driver->state().log.reported();
  summary.stopped = impl.driver->stopped_because();
  summary.seconds = static_cast<double>(impl.clock.now_ns() - start_ns) * 1e-9;
  summary.memory = impl.memory();
  if (impl.checkpointer) summary.last_checkpoint = impl.checkpointer->last();
  return summary;
}

void Run::interrupt() { impl_->driver->interrupt(); }

void Run::fail(const std::exception_ptr& error) {
  impl_->failed_outside = true;
  try {
    std::rethrow_exception(error);
  } catch (...) {
    impl_->driver->state().failure.capture();
  }
  // While nodes run, the thread that waits for them abandons; behind them the run is saved, and that may wait for other ranks.
  if (impl_->nodes_ended) impl_->reductions.abandon();
}

void Run::lose(int rank, const std::string& why) {
  impl_->driver->lose(rank, why);
  if (impl_->writes() && !impl_->driver->state().cut_short.failed()) impl_->warn(why + "; the others make its groups");
}

void Run::take_back(int rank, int64_t incarnation) {
  if (impl_->writes()) impl_->warn("rank " + std::to_string(rank) + " has come back, and makes groups again as soon as it can");
  impl_->driver->take_back(rank, incarnation);
}

void Run::save_now() {
  if (impl_->checkpointer) impl_->checkpointer->save_now();
}

RunStatus Run::status() const { return impl_->status("running"); }

}  // namespace sluice::engine
