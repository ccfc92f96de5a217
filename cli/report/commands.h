#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "cli/command/command.h"

namespace sluice::cli {

struct ReportArguments {
  std::vector<std::filesystem::path> run_folders;
  std::filesystem::path output;  // empty: a file on a terminal, else standard output
  std::uint16_t port = 0;        // of 127.0.0.1, to serve at; 0: one that is free
};
/// Writes one HTML file about the runs.
int report_runs(const ReportArguments& arguments);
/// Serves a page that follows them, until Ctrl-C or SIGTERM; prints its address.
int serve_report(const ReportArguments& arguments);

/// Adds `report` to the program.
void add_report_command(Command& program);

}  // namespace sluice::cli
