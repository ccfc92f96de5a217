#pragma once

#include <cstdint>
#include <exception>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/iteration_log.h"
#include "engine/memory_meter.h"
#include "engine/plan.h"
#include "engine/status.h"
#include "engine/work_observer.h"

namespace sluice::engine {

struct RunOptions {
  /// An existing folder that gets metrics.jsonl, trace.json, status.json, costs.json, memory.json, checkpoint/ and what nodes write. Empty: nothing is written.
  std::filesystem::path folder;

  /// Runs first on each executor's thread, with the number of cores that it may use.
  std::function<void(int threads)> on_executor_start;

  /// Called once an iteration, in order, on some executor's thread.
  std::function<void(const IterationReport&)> on_iteration;

  /// Bytes of tensors, for the memory report; empty: not counted.
  TensorCounter tensors;

  /// See every piece of work; they outlive the run.
  std::vector<WorkObserver*> observers;
};

/// kStalled: nothing got on for [runtime] stall_seconds. Some node may still be at work, see Run::execute.
enum class RunEnd { kDone, kInterrupted, kFailed, kStalled };

struct RunSummary {
  RunEnd end = RunEnd::kDone;
  std::exception_ptr error;     // kFailed, kStalled: a UserError (as OutOfMemory) or InternalError that names the place
  int64_t iterations = 0;       // complete ones
  double seconds = 0;
  MemoryReport memory;
  std::filesystem::path last_checkpoint;  // empty: none
};

/// One run of a plan. The constructor loads models and makes nodes; execute() runs them to the end.
/// interrupt() and status() may be called from any thread while execute() runs; everything else from one thread.
class Run {
 public:
  /// `plan` and its registry must outlive the run. Throws UserError with everything that models and nodes refuse, OutOfMemory when they
  /// do not fit.
  Run(const Plan& plan, RunOptions options);
  ~Run();

  /// Once. A failure is in the summary; what was saved stays whole. After kStalled a node may still hang in its executor's thread, and the
  /// destructor waits for it: a program that wants to end calls std::_Exit.
  RunSummary execute();

  /// No new groups are admitted; micro-batches in flight are finished and the trained models saved.
  void interrupt();

  RunStatus status() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sluice::engine
