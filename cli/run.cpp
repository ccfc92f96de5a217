#include <malloc.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <limits>
#include <memory>
#include <optional>
#include <thread>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/display.h"
#include "cli/exit_codes.h"
#include "cli/interrupt.h"
#include "cli/load.h"
#include "cli/nvtx_ranges.h"
#include "cli/run_folder.h"
#include "cli/run_history.h"
#include "engine/run.h"
#include "models/device.h"
#include "models/training/tensor_memory.h"
#include "nodes/torch_threads.h"

namespace sluice::cli {
namespace {

void print_failure(const engine::RunSummary& summary) {
  try {
    std::rethrow_exception(summary.error);
  } catch (const UserError& error) {
    std::fprintf(stderr, "%s", error.what());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "internal error: %s\n      = this is a bug in sluice; please report it with the run folder\n", error.what());
  }
  const std::string last = summary.last_checkpoint.empty() ? "none was saved yet" : summary.last_checkpoint.string();
  std::fprintf(stderr, "      = the run stopped; last checkpoint: %s\n", last.c_str());
}

// Checking a pipeline only warns of a device that this machine lacks; running it does not go on without.
void require_devices(const LoadedPipeline& loaded) {
  Problems missing;
  for (const Problem& problem : loaded.warnings) {
    if (problem.kind != "device-unavailable") continue;
    missing.push_back(problem);
    missing.back().severity = Severity::kError;
  }
  if (!missing.empty()) throw UserError(missing);
  const auto is_on_gpu = [](const engine::PlanModel& model) { return model.facts.device != "cpu"; };
  if (std::ranges::any_of(loaded.plan.models, is_on_gpu)) models::use_cuda();
}

// What models and data refuse is found before anything runs, and leaves no run folder behind. On a thread of its own, with which the
// helpers of its parallel loops end: OpenMP puts threads to sleep between any two loops as soon as it counts more than there are cores.
std::unique_ptr<engine::Run> make_run(const engine::Plan& plan, engine::RunOptions options, models::TensorMemory& tensors) {
  const std::filesystem::path folder = options.folder;
  try {
    return std::async(std::launch::async, [&] {
             tensors.watch_this_thread();
             return std::make_unique<engine::Run>(plan, std::move(options));
           }).get();
  } catch (const UserError&) {
    remove_run_folder(folder);
    throw;
  }
}

void warn_of_cores(const engine::Plan& plan) {
  const auto machine = static_cast<int64_t>(std::thread::hardware_concurrency());
  if (plan.runtime.cores <= machine) return;
  std::fprintf(stderr, "warning: [runtime] cores = %lld, but this machine has %lld: threads that share a core make everything slower\n\n",
               static_cast<long long>(plan.runtime.cores), static_cast<long long>(machine));
}

// A node that hangs would keep the program for ever.
[[noreturn]] void leave_what_hangs() {
  std::fflush(stdout);
  std::fflush(stderr);
  std::_Exit(kFailed);
}

// What is too small for the pool of tensors stays with the process too.
void keep_freed_memory() {
  ::mallopt(M_MMAP_THRESHOLD, 1 << 25);  // the most that glibc takes
  ::mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
}

int exit_code_of(const engine::RunSummary& summary) {
  switch (summary.end) {
    case engine::RunEnd::kDone: return kDone;
    case engine::RunEnd::kInterrupted: return kInterrupted;
    case engine::RunEnd::kFailed:
    case engine::RunEnd::kStalled: return kFailed;
  }
  return kFailed;
}

}  // namespace

int run_pipeline(const PipelineArguments& arguments, const std::filesystem::path& run_folder) {
  keep_freed_memory();
  const LoadedPipeline loaded = load_pipeline(arguments);
  require_devices(loaded);
  print_warnings(loaded.warnings);
  warn_of_cores(loaded.plan);
  const std::filesystem::path folder = make_run_folder(run_folder, loaded.plan);

  RunHistory history(loaded.plan);
  Display* display_of_run = nullptr;  // the run and its display know each other
  models::TensorMemory tensors;
  std::optional<RangeObserver> ranges;
  engine::RunOptions options{.folder = folder};
  options.on_executor_start = [&](int threads) {
    nodes::use_threads(threads);
    tensors.watch_this_thread();
  };
  options.tensors = {.live_bytes = [&] { return tensors.live(); }, .take_peak_bytes = [&] { return tensors.take_peak(); }};
  if (auto hooks = nvtx_hooks()) options.observers.push_back(&ranges.emplace(loaded.plan, std::move(*hooks)));
  options.on_iteration = [&](const engine::IterationReport& report) {
    history.add(report);
    display_of_run->iteration_done();
  };
  const auto made = make_run(loaded.plan, std::move(options), tensors);
  engine::Run& run = *made;
  const InterruptWatch interrupts;
  Display display(loaded.plan, history, run, [&] {
    if (interrupts.interrupted()) run.interrupt();
  });
  display_of_run = &display;

  const engine::RunSummary summary = run.execute();
  display.stop();
  if (summary.error) print_failure(summary);
  std::printf("%s\n", history.summary(summary, folder.string()).c_str());
  if (summary.end == engine::RunEnd::kStalled) leave_what_hangs();
  return exit_code_of(summary);
}

}  // namespace sluice::cli
