#pragma once

#include <cstddef>
#include <string>

#include "engine/contract/world/metrics.h"
#include "engine/observe/status.h"

namespace sluice::cli {

/// What `top` knows of a run.
struct TopView {
  engine::RunStatus status;
  engine::MetricRow metrics;  // of the last iteration that ended; empty before the first
  bool gone = false;          // the status says "running", but there is no such process
  double silent_seconds = 0;  // since the status was written
};

/// A run at one moment: progress, budget, memory, where it went, then what ranks (where there are several), executors, nodes and
/// edges do, then the metrics of the last iteration that do not depend on timing. What they do is left out of a run that is done,
/// and said in the past tense where it ended otherwise. Shares and rates are means since the run began; a rate is over the time
/// that the node was at work. Each line ends in a newline and is cut at `width` characters; what could steer the terminal is
/// escaped.
std::string top_text(const TopView& view, size_t width);

}  // namespace sluice::cli
