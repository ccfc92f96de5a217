#pragma once

#include <string>
#include <vector>

#include "cli/command/command.h"

namespace sluice::cli {

/// `format`: "text", "json" or "markdown".
int list_nodes(const std::vector<std::string>& plugins, const std::string& format);
/// Prints the name of each pipeline that comes with the program, and the first clause of its first comment.
int list_pipelines();
/// `format`: "text" or "markdown".
int list_problem_kinds(const std::string& format);
int describe_type(const std::string& type, const std::vector<std::string>& plugins);

/// Prints the script that completes the words of `program` in a shell: "bash", "zsh" or "fish".
int print_completion(const Command& program, const std::string& shell);

/// Adds `nodes`, `pipelines`, `problems` and `describe` to the program.
void add_type_commands(Command& program);

/// Adds `completion`.
void add_completion_command(Command& program);

}  // namespace sluice::cli
