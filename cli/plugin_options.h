#pragma once

#include "cli/command.h"
#include "cli/commands.h"

namespace sluice::cli {

/// --plugin and --plugins, of every subcommand that reads a pipeline.
void take_plugins(Command& command, PluginArguments& into);

}  // namespace sluice::cli
