// sweep_table.h: a table for people and for programs.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/json/json.h"
#include "base/text/printable.h"
#include "base/text/strings.h"
#include "cli/sweep/sweep_table.h"
#include "cli/terminal/text_table.h"

namespace sluice::cli {
namespace {

std::string number_text(double value, const char* format) {
  char text[40];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

// Two digits of the deviation, and as many places of the mean: 0.785 ± 0.023.
std::string spread_text(const Spread& spread, bool unicode) {
  constexpr int kMostPlaces = 8;
  if (spread.runs == 0) return "-";
  if (!spread.deviation) return number_text(spread.mean, "%.4g");
  const std::string between = unicode ? " ± " : " +- ";
  const double deviation = *spread.deviation;
  const int places = deviation > 0 ? 1 - static_cast<int>(std::floor(std::log10(deviation))) : 4;
  if (places < 0 || places > kMostPlaces) return number_text(spread.mean, "%.4g") + between + number_text(deviation, "%.2g");
  return fixed(spread.mean, places) + between + fixed(deviation, places);
}

// "best", "1 failed"
std::string remark_on(const SweepTable::Row& row) {
  const auto failed = std::ranges::count_if(
      row.runs, [](const auto& run) { return run.state.state == "failed" || run.state.state == "stalled"; });
  std::string text = row.is_best ? "best" : "";
  if (failed > 0) text += (text.empty() ? "" : ", ") + std::to_string(failed) + " failed";
  return text;
}

std::string quoted_cell(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string cell = "\"";
  for (const char c : text) cell += c == '"' ? std::string("\"\"") : std::string(1, c);
  return cell + "\"";
}

std::string csv_line(const std::vector<std::string>& cells) {
  std::vector<std::string> quoted;
  for (const std::string& cell : cells) quoted.push_back(quoted_cell(cell));
  return join(quoted, ",") + "\n";
}

Json runs_json(const SweepTable& table, const SweepTable::Row& row) {
  Json runs = Json::array();
  for (const SweepTable::Run& run : row.runs) {
    Json values = Json::object();
    for (const std::string& metric : table.metrics)
      if (run.values.contains(metric)) values[metric] = run.values.at(metric);
    runs.push_back({{"name", run.name},
                    {"seed", run.seed ? Json(*run.seed) : Json()},
                    {"state", run.state.state},
                    {"iterations_done", run.state.iterations_done},
                    {"metrics", std::move(values)}});
  }
  return runs;
}

}  // namespace

std::string sweep_table_text(const SweepTable& table, bool unicode) {
  std::vector<std::string> header{"combination"};
  header.insert(header.end(), table.metrics.begin(), table.metrics.end());
  header.insert(header.end(), {"finished", ""});
  TextTable text(header, TextTable::Last::kText);
  for (const SweepTable::Row& row : table.rows) {
    std::vector<std::string> cells{printable(row.combination)};
    for (const Spread& spread : row.spreads) cells.push_back(spread_text(spread, unicode));
    cells.push_back(std::to_string(row.finished()) + "/" + std::to_string(row.runs.size()));
    cells.push_back(remark_on(row));
    text.add(std::move(cells));
  }
  return text.text() + "  of each finished run the mean of its last 10 iterations; over the runs mean " + (unicode ? "±" : "+-") +
         " standard deviation\n";
}

std::string sweep_table_json(const SweepTable& table) {
  Json combinations = Json::array();
  for (const SweepTable::Row& row : table.rows) {
    Json set = Json::object(), metrics = Json::object();
    for (size_t i = 0; i < table.keys.size(); ++i) set[table.keys[i]] = row.values[i];
    for (size_t i = 0; i < table.metrics.size(); ++i) {
      const Spread& spread = row.spreads[i];
      metrics[table.metrics[i]] = {{"mean", spread.runs > 0 ? Json(spread.mean) : Json()},
                                   {"standard_deviation", spread.deviation ? Json(*spread.deviation) : Json()},
                                   {"runs", spread.runs}};
    }
    combinations.push_back({{"name", row.combination},
                            {"set", std::move(set)},
                            {"best", row.is_best},
                            {"metrics", std::move(metrics)},
                            {"runs", runs_json(table, row)}});
  }
  const Json json = {{"best_by", table.metrics.empty() ? Json() : Json(table.metrics.front())},
                     {"best", table.highest_is_best ? "highest" : "lowest"},
                     {"combinations", std::move(combinations)}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string sweep_table_csv(const SweepTable& table) {
  std::vector<std::string> header = table.keys;
  header.insert(header.end(), {"runs", "finished", "best"});
  for (const std::string& metric : table.metrics) header.insert(header.end(), {metric, metric + " standard deviation"});
  std::string text = csv_line(header);
  for (const SweepTable::Row& row : table.rows) {
    std::vector<std::string> cells = row.values;
    cells.insert(cells.end(), {std::to_string(row.runs.size()), std::to_string(row.finished()), row.is_best ? "1" : "0"});
    for (const Spread& spread : row.spreads) {
      cells.push_back(spread.runs > 0 ? number_text(spread.mean, "%.17g") : "");
      cells.push_back(spread.deviation ? number_text(*spread.deviation, "%.17g") : "");
    }
    text += csv_line(cells);
  }
  return text;
}

}  // namespace sluice::cli
