#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "cli/pipeline/load.h"
#include "cli/run/ranks.h"
#include "cli/run_folder/resume_point.h"

namespace sluice::cli {

/// Where a run takes place and where it begins.
struct RunStart {
  Ranks& ranks;                          // joined
  std::filesystem::path folder;          // exists, and is locked by the caller; of several ranks by rank 0
  std::optional<ResumePoint> from = {};  // nothing: from the beginning
  bool accept_changes = false;           // of the pipeline since that was saved, also those that change results
  int64_t show_samples_every = 0;        // two sample texts of every so many iterations; 0: none
};

/// One run from the loading of its models to the summary; returns the exit code. Prints what it does, obeys signals from when the
/// models are loaded (before, Ctrl-C and SIGTERM end the program at once), and writes the pipeline into the folder where it is
/// new there. Throws UserError for what models, data and a changed pipeline are refused for: nothing was run then.
int conduct_run(const LoadedPipeline& loaded, const RunStart& start);

}  // namespace sluice::cli
