#include "cli/sweep/sweep_table.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <limits>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "base/text/strings.h"
#include "cli/process/exit_codes.h"
#include "cli/run_folder/file_of_run.h"
#include "cli/run_folder/metrics_file.h"
#include "cli/run_folder/shown_metrics.h"
#include "cli/sweep/sweep_file.h"
#include "cli/terminal/ink.h"
#include "cli/terminal/terminal.h"
#include "engine/contract/run_folder.h"

namespace sluice::cli {
namespace fs = std::filesystem;
namespace {

constexpr int64_t kLastIterations = 10;

using MetricValues = std::map<std::string, double>;

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// By metric, of a finished run. What somebody had it make beyond the iterations of the sweep is not compared with the others.
MetricValues values_of_run(const fs::path& folder, int64_t iterations_of_sweep) {
  const auto file = file_of_run(folder, engine::kMetricsFile);
  if (!file) return {};
  std::map<std::string, std::vector<std::pair<int64_t, double>>> latest;  // at most the last so many of each
  int64_t iterations = 0;
  GrowingLines lines(*file);
  lines.look();
  size_t taken = 0;
  const auto take = [&](int64_t iteration, const std::string& name, double value) {
    if (iteration >= iterations_of_sweep) return;
    iterations = std::max(iterations, iteration + 1);
    auto& points = latest[name];
    if (points.size() == kLastIterations) points.erase(points.begin());
    points.emplace_back(iteration, value);
  };
  Problems damage;
  take_metrics(lines, taken, take, damage);
  if (!damage.empty()) throw UserError(damage.front());  // means of what is left would be other ones
  MetricValues values;
  for (const auto& [name, points] : latest) {
    std::vector<double> counted;
    for (const auto& [iteration, value] : points)
      if (iteration >= iterations - kLastIterations) counted.push_back(value);
    values[name] = counted.empty() ? points.back().second : mean(counted);
  }
  return values;
}

// What is to improve, on the main path and on those that measure, and how far the policy went for it.
std::vector<std::string> metrics_that_matter(const std::vector<std::string>& there) {
  const auto is_there = [&](const std::string& name) { return std::ranges::find(there, name) != there.end(); };
  std::vector<std::string> metrics;
  if (const char* target = metric_to_improve(is_there)) metrics.emplace_back(target);
  for (const std::string& name : there)
    if (name.ends_with(std::string("/") + kScoreMetric)) metrics.push_back(name);
  if (is_there(kKlMetric)) metrics.emplace_back(kKlMetric);
  return metrics;
}

// Of all finished runs, in order of name.
std::vector<std::string> names_in(const SweepTable& table) {
  MetricValues all;
  for (const SweepTable::Row& row : table.rows)
    for (const SweepTable::Run& run : row.runs) all.insert(run.values.begin(), run.values.end());
  std::vector<std::string> names;
  for (const auto& [name, value] : all) names.push_back(name);
  return names;
}

void require_metrics(const std::vector<std::string>& wanted, const std::vector<std::string>& there) {
  Problems missing;
  for (const std::string& name : wanted) {
    if (there.empty() || std::ranges::find(there, name) != there.end()) continue;
    const std::string nearest = did_you_mean(name, there);
    missing.push_back({.where = {},
                       .message = "no finished run of the sweep has the metric " + sluice::quoted(name),
                       .caret = {},
                       .notes = {},
                       .help = nearest.empty() ? "metrics.jsonl of a run names its metrics" : "did you mean " + nearest + "?"});
  }
  if (!missing.empty()) throw UserError(missing);
}

std::vector<double> values_of(const SweepTable::Row& row, const std::string& metric) {
  std::vector<double> values;
  for (const SweepTable::Run& run : row.runs) {
    const auto found = run.values.find(metric);
    if (found != run.values.end()) values.push_back(found->second);
  }
  return values;
}

void mark_best(SweepTable& table) {
  SweepTable::Row* best = nullptr;
  for (SweepTable::Row& row : table.rows) {
    if (row.spreads.empty() || row.spreads.front().runs == 0) continue;
    const double value = row.spreads.front().mean;
    const bool is_better =
        best == nullptr || (table.highest_is_best ? value > best->spreads.front().mean : value < best->spreads.front().mean);
    if (is_better) best = &row;
  }
  if (best != nullptr && table.rows.size() > 1) best->is_best = true;
}

// That the runs of a sweep are to have, in the order of the runs; of what a file does not say, as many as they have.
int64_t iterations_of(const SweepFile& sweep, size_t run) {
  constexpr int64_t kAll = std::numeric_limits<int64_t>::max();
  int64_t iterations = kAll;
  if (run >= sweep.effective.size()) return kAll;
  for (const engine::EffectiveKey& key : sweep.effective[run]) {
    const bool is_it = key.table == "pipeline" && key.key == "iterations";
    if (is_it) std::from_chars(key.text.data(), key.text.data() + key.text.size(), iterations);
  }
  return iterations;
}

// The rows, without what is made of their values.
SweepTable read_rows(const fs::path& folder) {
  const SweepFile sweep = read_sweep(folder);
  SweepTable table;
  for (const SweptKey& key : sweep.grid.keys) table.keys.push_back(key.key);
  for (auto& values : combinations_of(sweep.grid)) {
    const std::string name = combination_name(sweep.grid, values);
    table.rows.push_back({.combination = name, .values = std::move(values), .runs = {}, .spreads = {}});
  }
  const size_t seeds = std::max<size_t>(1, sweep.grid.seeds.size());
  const std::vector<SweptRun> runs = runs_of(sweep.grid);
  for (size_t i = 0; i < runs.size(); ++i) {
    const fs::path run_folder = folder_of_swept(folder, runs[i]);
    SweepTable::Run run{.name = runs[i].name, .seed = {}, .state = state_of_run(run_folder), .finished = false, .values = {}};
    if (!sweep.grid.seeds.empty()) run.seed = sweep.grid.seeds[i % seeds];
    const int64_t iterations = iterations_of(sweep, i);
    run.finished = run.state.is_finished(std::min(iterations, run.state.iterations));
    if (run.finished) run.values = values_of_run(run_folder, iterations);
    table.rows[runs[i].combination].runs.push_back(std::move(run));
  }
  return table;
}

}  // namespace

size_t SweepTable::Row::finished() const {
  return static_cast<size_t>(std::ranges::count_if(runs, [](const Run& run) { return run.finished; }));
}

Spread spread_of(const std::vector<double>& values) {
  if (values.empty()) return {};
  Spread spread{.runs = values.size(), .mean = mean(values), .deviation = {}};
  if (values.size() == 1) return spread;
  double squares = 0;
  for (const double value : values) squares += (value - spread.mean) * (value - spread.mean);
  spread.deviation = std::sqrt(squares / static_cast<double>(values.size() - 1));
  return spread;
}

SweepTable sweep_table(const SweepTableArguments& arguments) {
  SweepTable table = read_rows(arguments.folder);
  const std::vector<std::string> there = names_in(table);
  require_metrics(arguments.metrics, there);
  table.metrics = arguments.metrics.empty() ? metrics_that_matter(there) : arguments.metrics;
  const bool is_loss = !table.metrics.empty() && table.metrics.front().ends_with("loss");
  table.highest_is_best = arguments.best.empty() ? !is_loss : arguments.best == "highest";
  for (SweepTable::Row& row : table.rows)
    for (const std::string& metric : table.metrics) row.spreads.push_back(spread_of(values_of(row, metric)));
  mark_best(table);
  return table;
}

int print_sweep_table(const SweepTableArguments& arguments) {
  const SweepTable table = sweep_table(arguments);
  if (arguments.format == "json")
    print_text(sweep_table_json(table));
  else if (arguments.format == "csv")
    print_text(sweep_table_csv(table));
  else
    print_text(sweep_table_text(table, abilities_of(stdout).unicode));
  return kDone;
}

}  // namespace sluice::cli
