#pragma once

#include <cstdint>
#include <exception>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/files/file_system.h"
#include "engine/contract/world/common_memory.h"
#include "engine/contract/world/pass_group.h"
#include "engine/memory/memory_meter.h"
#include "engine/observe/iteration_log.h"
#include "engine/observe/status.h"
#include "engine/observe/work_observer.h"
#include "engine/plan/plan.h"
#include "engine/ranks/rank_clock.h"
#include "engine/ranks/rank_links.h"
#include "engine/run/executor_start.h"
#include "engine/run/run_end.h"
#include "engine/schedule/stages/replaceable_parts.h"

namespace sluice::engine {

struct RunOptions {
  /// An existing folder that gets metrics.jsonl, trace.json, status.json, costs.json, memory.json, checkpoints/ and what nodes
  /// write. Empty: nothing is written.
  std::filesystem::path folder;

  /// Of several ranks rank 0 writes the folder; the others only read it.
  bool writes_folder = true;

  /// A checkpoint of that folder to go on from, which damage_of() found intact. Empty: the run starts from its beginning.
  std::filesystem::path resume_from;

  /// Goes on although the pipeline has changed in ways that change results; harmless changes need no word.
  bool accept_changes = false;

  /// Through which everything is written, below `folder` and where [checkpoint] folder says, and nowhere else.
  FileSystem& files = disk();

  /// Gets what goes wrong without ending the run, such as a checkpoint that could not be saved. From any thread. Empty: nobody is
  /// told.
  std::function<void(const std::string& warning)> on_warning;

  /// Runs first on each executor's thread.
  std::function<void(const ExecutorStart&)> on_executor_start;

  /// Called once an iteration, in order, on some executor's thread.
  std::function<void(const IterationReport&)> on_iteration;

  /// Bytes of tensors, for the memory report; empty: not counted.
  TensorCounter tensors;

  /// See every piece of work; they outlive the run.
  std::vector<WorkObserver*> observers;

  /// Combines numbers with the other ranks of the run, which outlives it. Null: there are none.
  Reductions* reductions = nullptr;

  /// By which the ranks make groups for each other; what it refers to outlives the run. Nothing: each makes its own.
  std::optional<RankLinks> links = {};

  /// Of the ranks that train; outlives the run. Null: this rank has its memory alone.
  CommonMemory* common_memory = nullptr;

  /// In which this rank computes passes with those that assist it; outlives the run. Null: nobody does.
  PassGroups* passes = nullptr;

  /// All ranks of the run, for whoever watches it; empty: there is one. From any thread, quick.
  std::function<std::vector<RankSeen>()> ranks;

  /// How far the clock of this rank is behind that of rank 0: nothing before it is known. Empty: they are one. Likewise.
  std::function<std::optional<ClockOffset>()> clock_offset;

  /// Of a rank that comes into a run that goes on: called once, when the models are loaded. Tells the others that it is ready,
  /// and returns which version of the weights is the first that it gets; what it throws the constructor throws. Empty: this rank
  /// has been there from the beginning.
  std::function<int64_t()> comes_in;

  ReplaceableParts replaced;  // for tests
};

struct RunSummary {
  RunEnd end = RunEnd::kDone;
  std::exception_ptr error;  // kCutShort, kFailed, kStalled: a UserError (as OutOfMemory) or InternalError that names the place
  int64_t iterations = 0;    // complete ones, those before a resume included
  std::string stopped;       // why [pipeline] stop_when has ended it; empty: it has not
  bool hangs = false;        // some node may still be at work in a thread, see Run::execute
  double seconds = 0;
  MemoryReport memory;
  std::filesystem::path last_checkpoint;  // empty: none
};

/// One run of a plan. The constructor loads models and makes nodes; execute() runs them to the end. interrupt(), fail(), lose(),
/// take_back() and status() may be called from any thread while execute() runs; everything else from one thread.
class Run {
 public:
  /// `plan` and its registry must outlive the run. Throws UserError with everything that models and nodes refuse, OutOfMemory
  /// when they do not fit. Going on, a changed pipeline is refused with the list of what changed; then the run folder's files are
  /// cut to where the checkpoint was.
  Run(const Plan& plan, RunOptions options);
  ~Run();

  /// Once. A failure is in the summary; what was saved stays whole. Where summary.hangs a node is still at work in its executor's
  /// thread or one of its own, and the destructor waits for it: a program that wants to end calls std::_Exit.
  RunSummary execute();

  /// No new groups are admitted. What is in flight is finished within [runtime] grace_seconds, or else dropped up to the last
  /// iteration that no model was trained for; then the run is saved. Of several ranks all end, after the same iteration: the
  /// last that may have begun on one of them when they hear of it, or, when the grace of one is over, the last that all have
  /// entered (engine/schedule/state/agreed_end.h).
  void interrupt();

  /// Something outside has failed that the run cannot go on without, such as another rank. The first failure is the run's.
  void fail(const std::exception_ptr& error);

  /// Another rank is lost that may be (RankLayout::expendable): others make its groups, and where none is left the run is cut
  /// short. `why`: one sentence, of which the run warns.
  void lose(int rank, const std::string& why);

  /// Another process is that rank now (RunOptions::comes_in).
  void take_back(int rank, int64_t incarnation);

  /// Saves the run at the end of the iteration that groups are drawn for now.
  void save_now();

  RunStatus status() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sluice::engine
