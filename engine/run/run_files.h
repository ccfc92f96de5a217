#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/files/file.h"
#include "engine/contract/run_folder.h"
#include "engine/observe/event_file.h"
#include "engine/observe/iteration_log.h"
#include "engine/observe/trace.h"
#include "engine/plan/plan.h"
#include "engine/run/cost_recorder.h"

namespace sluice::engine {

/// What a run writes of itself into its folder while it goes on: metrics.jsonl and an event file, an entry an iteration;
/// trace.json; memory.json and costs.json at its end. Owned by the run. The constructor throws UserError where a file cannot be
/// written, and later what concerns metrics.jsonl, the result of the run. The other files only show it: one that cannot be
/// written, as where the disk is full, is told of once, and the run goes on without.
class RunFiles {
 public:
  struct Parts {
    const Plan& plan;                      // outlives this
    RunFolder folder;                      // exists
    int64_t trace_begin_ns = 0;            // see TraceWriter
    std::map<std::string, int64_t> grown;  // lengths of files of the folder, as the checkpoint has them that the run goes on from
    std::function<void(const std::string&)> on_warning;  // which file is given up, and why; from any thread
  };

  explicit RunFiles(Parts parts);

  /// They see every piece of work; owned by this.
  std::vector<WorkObserver*> observers() { return {&trace_, &recorder_}; }

  /// One iteration after the other.
  void write(const IterationReport& report);

  /// Of the files that have all iterations that were written, as a checkpoint keeps them: no trace. Not beside write().
  std::map<std::string, int64_t> lengths() const;

  /// See TraceWriter.
  void name_process_in_trace(const std::string& name) { trace_.name_own_process(name); }
  void add_to_trace(const RankSlices& piece, int64_t shift_ns, const std::string& name) { trace_.add(piece, shift_ns, name); }

  /// See CostRecorder.
  void add_to_costs(int rank, RankCosts costs) { recorder_.hear(rank, std::move(costs)); }

  /// Brings the work that has ended to trace.json. From any thread.
  void flush_trace() { trace_.flush(); }

  /// Completes all that grows. When no work is under way.
  void close();

  /// Likewise: what the work has cost, if there was any.
  void write_costs() const;

  /// Likewise: memory.json.
  void write_memory(const std::string& json) const;

 private:
  void warn_of_loss(const std::string& name) const;
  bool unless_lost(const std::string& name, const std::function<void()>& write) const;

  const RunFolder folder_;
  std::map<std::string, int64_t> earlier_;  // event files of earlier parts of the run, which grow no more
  const std::function<void(const std::string&)> on_warning_;
  OutputFile metrics_;
  EventFile events_;
  bool events_go_on_ = true;
  CostRecorder recorder_;
  TraceWriter trace_;
};

}  // namespace sluice::engine
