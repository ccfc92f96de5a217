#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/problem.h"

namespace sluice::cli {

/// A key of which a sweep has several values, or several keys that have the same one in each run.
struct SweptKey {
  std::string key;  // "models.actor.optimizer.learning_rate", "nodes.generate.temperature+nodes.train.temperature"
  std::vector<std::string> values;  // as --set takes one; at least two

  bool operator==(const SweptKey&) const = default;
};

/// What a sweep runs a pipeline with. A plain value.
struct SweepGrid {
  std::vector<std::string> sets;    // KEY=VALUE, the same in all runs
  std::vector<SweptKey> keys;       // in the order of the command line
  std::vector<std::int64_t> seeds;  // none: that of the pipeline

  bool operator==(const SweepGrid&) const = default;
};

/// One run of a sweep. All that it is follows from the grid.
struct SweptRun {
  std::string name;               // of its run folder: "learning_rate=1e-4,seed=2"
  size_t combination = 0;         // in the order of combinations_of()
  std::vector<std::string> sets;  // KEY=VALUE: those of all runs, of its combination, and its seed
};

/// The values of all keys in each combination, the last key fastest. Without keys there is one.
std::vector<std::vector<std::string>> combinations_of(const SweepGrid& grid);

/// What a combination is called: "learning_rate=1e-4,clip=0.2"; without keys "all". A key is called by as much of its end as
/// tells it from the others; several that have the same value by the first of them.
std::string combination_name(const SweepGrid& grid, const std::vector<std::string>& values);

/// Of each combination a run for each seed. Names are those of folders, each another: what a value has beside letters, digits and
/// `._+-` is a hyphen in them, and long values are cut.
std::vector<SweptRun> runs_of(const SweepGrid& grid);

/// The grid of a command line. Each of `sets` is KEY=VALUE or KEY=VALUE,VALUE,...: commas separate values, but not in strings,
/// brackets and braces. KEY+KEY are keys that have the same value. Adds a problem for what is none, for a key that is there twice
/// or is the seed, and where there is nothing to sweep, or more than 1,000 runs.
SweepGrid read_grid(const std::vector<std::string>& sets, const std::vector<std::int64_t>& seeds, Problems& problems);

/// "1..3,7" is 1, 2, 3, 7.
struct ReadSeeds {
  std::vector<std::int64_t> seeds;
  std::string fault;  // what is wrong with the text, and then with the seeds; empty: nothing
};
ReadSeeds read_seeds(std::string_view text);

}  // namespace sluice::cli
