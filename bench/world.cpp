#include "bench/world.h"

#include <time.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <numeric>

#include "bench/bench_nodes.h"
#include "engine/check/check.h"

namespace sluice::bench {
namespace {

using Clock = std::chrono::steady_clock;

[[noreturn]] void end_with(const std::string& text) {
  std::fprintf(stderr, "%s\n", text.c_str());
  std::exit(1);
}

// In memory where there is such a file system: the disk is not what is measured.
std::filesystem::path scratch_folder() {
  const std::filesystem::path memory = "/dev/shm";
  const auto parent = std::filesystem::is_directory(memory) ? memory : std::filesystem::temp_directory_path();
  return parent / ("sluice-bench-" + std::to_string(::getpid()));
}

double seconds_of(clockid_t clock) {
  timespec spent{};
  ::clock_gettime(clock, &spent);
  return static_cast<double>(spent.tv_sec) + static_cast<double>(spent.tv_nsec) * 1e-9;
}

}  // namespace

World::World(const engine::PipelineBuilder& builder) {
  register_bench_nodes(registry_);
  engine::CheckResult checked = engine::check(builder.build(), registry_);
  if (!checked.plan) end_with(render(checked.problems));
  plan_ = std::make_unique<engine::Plan>(std::move(*checked.plan));
}

double Timed::steady_seconds() const { return std::accumulate(iteration_seconds.begin(), iteration_seconds.end(), 0.0); }

Timed run(const World& world, const How& how) {
  Timed timed{.iteration_seconds =
                  std::vector<double>(static_cast<size_t>(world.plan().pipeline.iterations) - 1)};  // does not grow
  Clock::time_point last;
  double first_cpu = 0;
  engine::RunOptions options{.folder = how.traced ? scratch_folder() : std::filesystem::path()};
  if (how.traced) std::filesystem::create_directories(options.folder);
  options.on_executor_start = [](const engine::ExecutorStart&) { sleep_precisely(); };
  options.observers = how.observers;
  options.on_iteration = [&](const engine::IterationReport& row) {
    const Clock::time_point now = Clock::now();
    if (row.iteration == 0)
      first_cpu = thread_cpu_seconds();
    else
      timed.iteration_seconds[static_cast<size_t>(row.iteration) - 1] = std::chrono::duration<double>(now - last).count();
    last = now;
    timed.steady_cpu_seconds = thread_cpu_seconds() - first_cpu;
    if (how.on_iteration) how.on_iteration(row);
  };
  const double cpu = cpu_seconds();
  engine::RunSummary summary;
  {
    engine::Run run(world.plan(), options);
    summary = run.execute();
  }
  timed.cpu_seconds = cpu_seconds() - cpu;
  timed.seconds = summary.seconds;
  if (how.traced) std::filesystem::remove_all(options.folder);
  if (summary.end == engine::RunEnd::kDone) return timed;
  try {
    if (summary.error) std::rethrow_exception(summary.error);
  } catch (const std::exception& error) {
    end_with(error.what());
  }
  end_with("the run did not end as it should");
}

double cpu_seconds() { return seconds_of(CLOCK_PROCESS_CPUTIME_ID); }
double thread_cpu_seconds() { return seconds_of(CLOCK_THREAD_CPUTIME_ID); }

}  // namespace sluice::bench
