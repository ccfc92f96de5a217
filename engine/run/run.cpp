#include "engine/run/run.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>

#include "base/error.h"
#include "base/text/printable.h"
#include "base/text/strings.h"
#include "engine/memory/out_of_memory.h"
#include "engine/observe/engine_metrics.h"
#include "engine/run/patience.h"
#include "engine/run/run_impl.h"
#include "engine/run/told_by_rank.h"
#include "engine/schedule/stages/thread_executor.h"

namespace sluice::engine {
namespace {

// How long a checkpoint that is being written may take to be on the disk when the run has failed: beside a node that hangs, and
// else.
constexpr auto kLastWriteAfterStall = std::chrono::seconds(4), kLastWrite = Patience::kForWriting;

// How often a run that is driven looks at whether it has been interrupted or has failed.
constexpr auto kLook = std::chrono::milliseconds(50);

// What is under way when the grace of an interrupt is over mostly ends in this time, and is not spoken of.
constexpr int64_t kBehindGraceNs = 3'000'000'000;

}  // namespace

Run::Impl::~Impl() {
  monitor.reset();
  end();
}

void Run::Impl::warn(const std::string& warning) {
  if (options.on_warning) options.on_warning(warning);
}

// The first failure is the one to tell.
void Run::Impl::warn_of_file(const std::string& warning) {
  if (!driver || !driver->state().stopping()) warn(warning);
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
  if (!options.replaced.executor) return executor;
  return options.replaced.executor(index, std::move(executor));
}

// Joins the threads before what they work on goes.
void Run::Impl::end() {
  driver->forget_executors();
  executors.clear();
  nodes_ended = true;  // before failures are looked for: one that comes later abandons by itself
}

// What an interrupt leaves in flight has its grace, and so has what goes on beside a node that has failed.
void Run::Impl::wait_for_the_end() {
  const auto grace_ns = static_cast<int64_t>(plan.runtime.grace_seconds * 1e9);
  int64_t interrupted_ns = -1;
  bool is_told = false;              // who keeps an interrupted run
  std::optional<Patience> patience;  // since a failure
  while (!driver->in_progress().wait_for(kLook)) {
    const int64_t now = clock.now_ns();
    if (driver->is_interrupted() && interrupted_ns < 0) interrupted_ns = now;
    if (driver->state().stopping() && !patience) {
      patience.emplace();
      driver->let_everything_end();
      if (options.passes != nullptr) options.passes->abandon();
    }
    const int64_t over_ns = interrupted_ns < 0 ? -1 : now - interrupted_ns - grace_ns;
    if (over_ns >= 0) driver->drop_in_flight();
    if (over_ns >= kBehindGraceNs && !patience && !std::exchange(is_told, true)) tell_who_is_at_work();
    if (patience && patience->is_over(now, stalled || failed_outside, holds_up())) return;
  }
}

// A node's work cannot be cut off from outside, and what it trains is saved after it.
void Run::Impl::tell_who_is_at_work() {
  for (const RunStatus::Executor& executor : driver->status().executors) {
    if (executor.working_on.empty() || holds_up()) continue;
    warn("the grace is over, and '" + executor.working_on + "' has been at work for " + human_seconds(executor.for_seconds) +
         ": the run is saved when that has ended; another signal ends it at once, unsaved");
  }
}

// After the end of the run, when all is saved: a call that nobody can end would keep the program for ever.
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

// Of a run that has not failed; throws why it has.
void Run::Impl::save_last() {
  driver->state().failure.rethrow();
  if (files) files->write_costs();
  if (checkpointer) checkpointer->save_last();
  if (own_parts) own_parts->save_last();
  for (const auto& model : shared_models) model->dismiss();
}

// How the run has ended, and why if badly.
void Run::Impl::save_and_judge(RunSummary& summary) {
  try {
    complete_files();
    save_last();
    const RunState& state = driver->state();
    summary.end = end_of(state);
    if (summary.end == RunEnd::kCutShort) summary.error = explained(state.cut_short.error(), plan, memory());
  } catch (...) {
    summary.end = stalled ? RunEnd::kStalled : RunEnd::kFailed;
    // What another rank's loss leads to here says less than that loss.
    const std::exception_ptr error = failed_outside ? driver->state().failure.error() : std::current_exception();
    summary.error = explained(error, plan, memory());
  }
}

// What it has come to.
void Run::Impl::count(RunSummary& summary) {
  summary.iterations = driver->state().log.reported();
  summary.stopped = driver->stopped_because();
  summary.memory = memory();
  if (checkpointer) summary.last_checkpoint = checkpointer->last();
}

// That the file says otherwise changes nothing of the run.
void Run::Impl::tell_last(RunStatus last) {
  const std::string state = last.state;
  try {
    monitor->finish(std::move(last));
  } catch (const UserError& error) {
    warn_of_file("status.json does not say that the run is " + state + ": " + error.message());
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
  driver->state().failure.capture(std::make_exception_ptr(UserError(std::move(problem))));
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
  summary.hangs = impl.driver->in_progress().count() > 0;
  RunStatus last = impl.status("");  // while there are nodes
  if (!summary.hangs) impl.end();
  if (impl.checkpointer) impl.checkpointer->finish_writing(summary.hangs ? kLastWriteAfterStall : kLastWrite);
  impl.save_and_judge(summary);
  last.state = state_text(summary.end);
  impl.tell_last(std::move(last));
  summary.hangs = impl.leaves_a_call_behind() || summary.hangs;
  summary.seconds = static_cast<double>(impl.clock.now_ns() - start_ns) * 1e-9;
  impl.count(summary);
  return summary;
}

void Run::interrupt() { impl_->driver->interrupt(); }

void Run::fail(const std::exception_ptr& error) {
  impl_->failed_outside = true;
  impl_->driver->state().failure.capture(error);
  // While nodes run, the thread that waits for them abandons; after them the run is saved, and that may wait for other ranks.
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
