#pragma once

#include <string>
#include <vector>

#include "cli/command/command.h"

namespace sluice::cli {

/// What the words of a command line come to: a command whose arguments are filled in, or nothing left to do.
struct CommandLine {
  const Command* command = nullptr;  // null: --help, --version or wrong usage
  int exit_code = 0;                 // then this
};

/// Parses `words` into what the commands of `program` take. Prints what --help and --version ask for to stdout, and what is wrong
/// with the words to stderr, with the nearest right word and where to read more.
///
/// `FILE` is short for `run FILE`, `checkpoints RUN` for `checkpoints list RUN`, and there the subcommand may come after the
/// folder.
CommandLine parse_command_line(Command& program, std::vector<std::string> words);

}  // namespace sluice::cli
