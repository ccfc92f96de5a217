#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/memory/memory_report.h"
#include "engine/ranks/rank_sign.h"

namespace sluice::engine {

/// A look at a run from outside: what `RUN/status.json` holds, what `top` shows and what the watchdog reports. A plain value.
struct RunStatus {
  struct Executor {
    std::string name;
    int threads = 1;
    std::string working_on;   // a node; empty: idle
    double for_seconds = 0;   // since it began that
    double busy_seconds = 0;  // since the run began
    int64_t queued = 0;       // pieces of work that could start at once
  };
  struct Node {
    std::string name;
    std::string executor;
    int64_t micro_batches = 0;  // done since the run began
    int64_t tokens = 0;         // of these
    double busy_seconds = 0;
    int64_t queued = 0;     // packets that have arrived and are not done, the one at work included
    int64_t held = 0;       // of a barrier: micro-batches that it collected
    std::string waits_for;  // as a person would say it; empty: it works, or nothing is left to do
  };
  struct Edge {
    std::string from;
    std::string to;
    int64_t micro_batches = 0;  // handed on by `from` and not done by `to`
    int64_t tokens = 0;
    int64_t bytes = 0;  // of the columns alive on the edge
  };

  std::string pipeline;
  std::string state;  // "running", "done", "failed", "interrupted", "stalled"
  int64_t pid = 0;
  double seconds = 0;               // since the run began
  int64_t iterations = 0;           // [pipeline] iterations
  int64_t iterations_done = 0;      // ended by every node
  int64_t iterations_before = 0;    // those of them that were done when the run began, which goes on from a checkpoint
  int64_t sampling_iteration = -1;  // the one that the source and the rollout are in
  int64_t running_samples = 0;      // that the rollout's last step gave a token
  int64_t tokens_in_flight = 0;
  int64_t tokens_in_flight_peak = 0;
  int64_t budget = 0;  // [budget] tokens_in_flight
  int64_t column_bytes = 0;
  int64_t column_bytes_peak = 0;
  int64_t resident_bytes = 0;
  MemoryReport memory;  // planned and measured so far
  std::vector<Executor> executors;
  std::vector<Node> nodes;  // in the order of the plan
  std::vector<Edge> edges;
  std::vector<RankSeen> ranks;  // of several: all of them. The rest is of rank 0
};

/// One JSON object; the keys are the names of the fields.
std::string status_json(const RunStatus& status);

/// Reads what status_json wrote. Throws UserError when `text` is something else; `name` is what it is called in the message.
RunStatus parse_status(const std::string& text, const std::string& name);

}  // namespace sluice::engine
