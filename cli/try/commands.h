#pragma once

#include <string>
#include <vector>

#include "cli/command/command.h"

namespace sluice::cli {

/// Runs one node or objective on columns that come as JSON on standard input.
int try_one(const std::string& what, const std::vector<std::string>& sets, const std::string& preset,
            const std::vector<std::string>& plugins);

/// Adds `try` to the program.
void add_try_command(Command& program);

}  // namespace sluice::cli
