#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace sluice::cli {

/// A program that is one run of a sweep.
struct SweepProcess {
  std::string name;                // of the run
  size_t number = 1;               // among all runs of the sweep, from 1
  std::vector<std::string> words;  // the program and its arguments
};

/// What became of them.
struct SweepOutcome {
  std::vector<std::string> failed;  // "NAME (pid 4711) exited with code 1", in the order in which they ended
  int failed_code = 0;              // of the first of these, as a shell tells it
  int signal = 0;                   // SIGINT or SIGTERM, after which no more were started; 0: none came
};

/// Runs all of them, `parallel` at a time, as Children (cli/process/children.h) of this process. Each has its share of the cores;
/// a single one at a time writes where this process does. One that fails ends no other; after SIGINT or SIGTERM, which they are
/// passed, no more are started. `runs`: how many the sweep has, for messages. Throws UserError where one cannot be started; then
/// none is left.
SweepOutcome run_processes(const std::vector<SweepProcess>& processes, int parallel, size_t runs);

}  // namespace sluice::cli
