#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/files/confined_file_system.h"
#include "engine/checkpoint/checkpointer.h"
#include "engine/checkpoint/own_parts.h"
#include "engine/contract/run_folder.h"
#include "engine/observe/monitor.h"
#include "engine/run/run.h"
#include "engine/run/run_files.h"
#include "engine/schedule/driver.h"

namespace sluice::engine {

/// What a run has. For the files that implement it alone: run_begin.cpp makes everything, run.cpp drives it to its end.
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
  void tell_who_is_at_work();
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
  void save_last();
  void save_and_judge(RunSummary& summary);
  void count(RunSummary& summary);
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

}  // namespace sluice::engine
