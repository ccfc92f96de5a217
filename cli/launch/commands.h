#pragma once

#include "cli/command/run_arguments.h"

namespace sluice::cli {

/// Runs a pipeline. Where it has roles, and this process is none of their ranks, it launches them.
int run_or_launch(const RunArguments& arguments);

/// Goes on with a run, by the pipeline that its folder keeps; likewise. 1 when no checkpoint is intact.
int resume_or_launch(const ResumeArguments& arguments);

struct LaunchArguments {
  RunArguments run;
  int ranks = 0;
  int port = 0;      // of 127.0.0.1, where the ranks meet; 0: one that is free
  int restarts = 3;  // LaunchOptions::restarts
};
/// Runs a pipeline in several processes of this machine, each of them `rlhf-run run`. The exit code is that of the first that
/// ended badly.
int launch_pipeline(const LaunchArguments& arguments);

/// Adds `run` to the program.
void add_run_command(Command& program);

/// Adds `launch`.
void add_launch_command(Command& program);

/// Adds `resume`.
void add_resume_command(Command& program);

}  // namespace sluice::cli
