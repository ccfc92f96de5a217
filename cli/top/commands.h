#pragma once

#include <filesystem>

#include "cli/command/command.h"

namespace sluice::cli {

/// Shows the run in `folder` on the terminal until it ends; once, when asked to, without a terminal and when it has ended.
int show_top(const std::filesystem::path& folder, bool once);

/// Adds `top` to the program.
void add_top_command(Command& program);

}  // namespace sluice::cli
