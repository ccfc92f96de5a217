#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "cli/command/command.h"

namespace sluice::cli {

/// Prints the JSON Schema of pipeline files (cli/schema/pipeline_schema.h), or writes it to `output`.
int print_schema(const std::vector<std::string>& plugins, const std::filesystem::path& output);

/// Adds `schema` to the program.
void add_schema_command(Command& program);

}  // namespace sluice::cli
