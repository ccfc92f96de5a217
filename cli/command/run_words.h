#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "cli/command/run_arguments.h"
#include "engine/plan/plan.h"

namespace sluice::cli {

/// The command line, without the program, that makes `rlhf-run` run with these arguments: what a launcher hands on to its ranks.
std::vector<std::string> words_of(const RunArguments& arguments);
std::vector<std::string> words_of(const ResumeArguments& arguments);

/// The command that goes on with the run of a folder, on as many ranks of this machine.
std::string command_to_go_on(const engine::Plan& plan, const std::filesystem::path& folder);

}  // namespace sluice::cli
