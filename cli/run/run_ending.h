#pragma once

#include <exception>
#include <filesystem>
#include <string>
#include <vector>

#include "engine/run/run.h"

// How a run has ended, for people on standard error and for whoever started the program.
namespace sluice::cli {

/// The error of a run that has one: as the user is to read it, or as a bug of the program or of one of these plugins.
void print_failure(const engine::RunSummary& summary, const std::vector<std::string>& plugins);

/// Its first line, for other ranks.
std::string what_failed(const std::exception_ptr& error);

/// The newest checkpoint; empty: there is none. A rank that does not write the run folder looks into it.
std::filesystem::path last_checkpoint(const engine::RunSummary& summary, const std::filesystem::path& folder);

/// `how_to_go_on`: the command that does, which no removed or renamed folder gets.
void print_where_to_go_on(const std::filesystem::path& checkpoint, const std::string& how_to_go_on);

/// `signal`: the one that this rank had; 0: none.
int exit_code_of(const engine::RunSummary& summary, int signal);

}  // namespace sluice::cli
