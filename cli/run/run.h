#pragma once

#include "cli/command/run_arguments.h"

namespace sluice::cli {

/// Runs a pipeline in this process, as one of its ranks where its environment says so. The exit code; throws UserError for what
/// is found wrong before anything runs.
int run_here(const RunArguments& arguments);

/// Goes on with a run in this process, by the pipeline that its folder keeps. 1 when no checkpoint is intact.
int resume_here(const ResumeArguments& arguments);

}  // namespace sluice::cli
