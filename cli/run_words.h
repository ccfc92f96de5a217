#pragma once

#include <string>
#include <vector>

#include "cli/commands.h"

namespace sluice::cli {

/// The command line, without the program, that makes `rlhf-run` run with these arguments: what a launcher hands on to its ranks.
std::vector<std::string> words_of(const RunArguments& arguments);

}  // namespace sluice::cli
