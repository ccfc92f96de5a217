#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "cli/command/pipeline_arguments.h"
#include "cli/pipeline/load.h"
#include "cli/plan/fit_remedies.h"
#include "engine/memory/memory_needs.h"

namespace sluice::cli {

/// How a pipeline fits into the memory that there is.
struct Fit {
  /// A remedy alone, with those that it needs.
  struct Tried {
    Remedy remedy;
    bool possible = false;    // it goes with the rest of the pipeline
    engine::MemoryNeed need;  // the tightest; without the remedy where that is not possible
  };

  /// Changes after which it fits.
  struct Way {
    std::vector<size_t> remedies;   // by index, ascending
    std::vector<std::string> sets;  // theirs, and tokens in flight where these are fewer
    bool fewer_tokens = false;
    engine::MemoryNeed need;       // the tightest
    double iteration_seconds = 0;  // simulated
  };

  engine::MemoryNeed need;  // as it is: the tightest
  bool fits = false;        // as it is
  double iteration_seconds = 0;
  std::vector<Tried> remedies;
  std::vector<Way> ways;     // none of which has a change that it can do without; the fastest first
  engine::MemoryNeed least;  // of what was tried: the smallest
};

/// Tries the remedies and all that they make together, fewest first. One thread; seconds for a dozen. Nothing is loaded: the
/// config.json of models is enough.
Fit search_fit(const PipelineArguments& arguments, const SizedPipeline& pipeline);

}  // namespace sluice::cli
