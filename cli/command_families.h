#pragma once

#include "cli/command.h"

namespace sluice::cli {

// The subcommands, a family of them in a file each: what a command is for, what it takes, examples, and the function of
// commands.h that does it. Each adds its family to `program`.

void add_pipeline_commands(Command& program);    // run, launch, init, validate, plan, graph, simulate
void add_sweep_command(Command& program);        // sweep
void add_run_folder_commands(Command& program);  // resume, top, report, checkpoints
void add_type_commands(Command& program);        // nodes, problems, describe, schema, try
void add_model_commands(Command& program);       // model
void add_shell_commands(Command& program);       // completion

}  // namespace sluice::cli
