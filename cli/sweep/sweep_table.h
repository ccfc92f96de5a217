#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/sweep/commands.h"
#include "cli/sweep/swept_state.h"

namespace sluice::cli {

/// Over the finished runs of a combination that have the metric.
struct Spread {
  size_t runs = 0;
  double mean = 0;
  std::optional<double> deviation;  // of a sample: over n - 1; nothing for one run
};

Spread spread_of(const std::vector<double>& values);

/// What a sweep has come to so far: a row for each combination. A plain value.
struct SweepTable {
  struct Run {
    std::string name;
    std::optional<std::int64_t> seed;  // nothing: that of the pipeline
    SweptState state;
    bool finished = false;
    std::map<std::string, double> values;  // of a finished run
  };
  struct Row {
    std::string combination;
    std::vector<std::string> values;  // of the keys
    std::vector<Run> runs;
    std::vector<Spread> spreads;  // of the metrics
    bool is_best = false;

    size_t finished() const;
  };

  std::vector<std::string> keys;
  std::vector<std::string> metrics;  // by the first of which the best is chosen
  bool highest_is_best = true;
  std::vector<Row> rows;
};

/// Of a run counts the mean of its last 10 iterations; of a metric that not all of these have, over those that do, or else its
/// last value. Throws UserError where the folder holds no sweep, or no finished run has a metric that is asked for.
SweepTable sweep_table(const SweepTableArguments& arguments);

std::string sweep_table_text(const SweepTable& table, bool unicode);

/// {"best_by", "best": "highest" or "lowest", "combinations": [{"name", "set": {KEY: VALUE}, "best", "metrics": {NAME: {"mean",
/// "standard_deviation", "runs"}}, "runs": [{"name", "seed", "state", "iterations_done", "metrics": {NAME: VALUE}}]}]}
std::string sweep_table_json(const SweepTable& table);

/// A column for each key, "runs", "finished", "best", and for each metric "NAME" and "NAME standard deviation" (RFC 4180).
std::string sweep_table_csv(const SweepTable& table);

}  // namespace sluice::cli
