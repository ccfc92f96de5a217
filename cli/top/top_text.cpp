#include "cli/top/top_text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string_view>
#include <vector>

#include "base/text/printable.h"
#include "base/text/strings.h"
#include "cli/terminal/ink.h"
#include "cli/terminal/terminal.h"
#include "engine/observe/engine_metrics.h"

namespace sluice::cli {
namespace {

using engine::RunStatus;
using Row = std::vector<std::string>;

constexpr size_t kWideBar = 16, kNarrowBar = 8, kWide = 100;
constexpr double kSilent = 10;  // seconds; a run writes its status about twice a second
constexpr size_t kMostMetricRows = 8;
constexpr std::string_view kGap = "   ";  // between what stands beside each other

std::string count_text(int64_t count) { return human_count(static_cast<double>(count)); }

std::string share_text(double part, double whole) {
  return std::to_string(whole > 0 ? std::llround(std::clamp(100 * part / whole, 0.0, 100.0)) : 0) + " %";
}

std::string padded(const std::string& text, size_t width, bool right) {
  const std::string blanks(width - std::min(width, printed_width(text)), ' ');
  return right ? blanks + text : text + blanks;
}

// The first `width` cells without blanks at the end, as a line.
std::string line(std::string_view text, size_t width) {
  std::string cut = fitted({{std::string(text)}}, width, /*colour=*/false);
  cut.erase(cut.find_last_not_of(' ') + 1);
  return cut + "\n";
}

// The first row is the heading. Columns whose heading begins with '>' hold numbers and are aligned at the right.
std::string table(std::vector<Row> rows, size_t width) {
  Row& heading = rows.front();
  std::vector<bool> right;
  for (std::string& title : heading) {
    right.push_back(title.starts_with('>'));
    if (right.back()) title.erase(0, 1);
  }
  std::vector<size_t> widths(heading.size());
  for (const Row& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], printed_width(row[i]));
  }
  std::string text = "\n";
  for (const Row& row : rows) {
    std::string cells;
    for (size_t i = 0; i < row.size(); ++i) cells += std::string(i == 0 ? "" : "  ") + padded(row[i], widths[i], right[i]);
    text += line(cells, width);
  }
  return text;
}

// What rows say of a moment: that it is now, that it was the last one of a run that has ended otherwise than well, or nothing,
// since a run that is done has nothing left to do.
enum class Moment { kNow, kLast, kNone };

Moment moment_of(const TopView& view) {
  if (view.status.state == "done") return Moment::kNone;
  return view.status.state == "running" && !view.gone ? Moment::kNow : Moment::kLast;
}

// After the first `lasting` columns of a table are those of a moment.
std::vector<Row> of_moment(std::vector<Row> rows, Moment moment, size_t lasting) {
  if (moment != Moment::kNone) return rows;
  for (Row& row : rows) row.resize(lasting);
  return rows;
}

std::string state_text(const TopView& view) {
  if (view.status.state != "running") return view.status.state;
  if (view.gone) return "ended without saying so";
  if (view.silent_seconds > kSilent) return "running, but silent for " + human_seconds(view.silent_seconds);
  return "running";
}

std::string progress(const TopView& view, size_t bar_width) {
  const RunStatus& s = view.status;
  const auto done = static_cast<double>(s.iterations_done), all = static_cast<double>(s.iterations);
  std::string text = s.pipeline + "  " + state_text(view) + std::string(kGap) + "iteration " + std::to_string(s.iterations_done) +
                     "/" + std::to_string(s.iterations) + "  " + bar(done, all, bar_width) + " " + share_text(done, all);
  text += std::string(kGap) + "elapsed " + human_seconds(s.seconds);
  if (s.iterations_before > 0) text += " since iteration " + std::to_string(s.iterations_before);  // from where it went on
  const bool goes_on = s.state == "running" && !view.gone && all > done;
  const auto here = static_cast<double>(s.iterations_done - s.iterations_before);  // in `seconds`
  if (goes_on && here > 0) text += std::string(kGap) + "about " + human_seconds(s.seconds / here * (all - done)) + " left";
  return text;
}

std::string budget(const RunStatus& s, size_t bar_width) {
  const auto used = static_cast<double>(s.tokens_in_flight), all = static_cast<double>(s.budget);
  std::string text = "budget    " + count_text(s.tokens_in_flight) + " of " + count_text(s.budget) + " tokens in flight  " +
                     bar(used, all, bar_width) + " " + share_text(used, all) + std::string(kGap) + "peak " +
                     count_text(s.tokens_in_flight_peak);
  if (s.state == "running" && s.sampling_iteration >= 0)
    text += std::string(kGap) + "sampling iteration " + std::to_string(s.sampling_iteration) +
            (s.running_samples > 0 ? ": " + plural(s.running_samples, "sample") : "");
  return text;
}

std::string memory(const RunStatus& s) {
  return "memory    columns " + human_bytes(s.column_bytes) + ", peak " + human_bytes(s.column_bytes_peak) + std::string(kGap) +
         "resident " + human_bytes(s.resident_bytes);
}

// What the plan said and the most that there was.
std::string memory_classes(const RunStatus& s, size_t width) {
  if (s.memory.classes.empty()) return {};
  std::vector<Row> rows{{"memory", ">planned", ">peak"}};
  for (const engine::MemoryClass& of : s.memory.classes)
    rows.push_back({of.name, of.planned_bytes > 0 ? human_bytes(of.planned_bytes) : "-", human_bytes(of.peak_bytes)});
  rows.push_back({"resident", human_bytes(s.memory.planned_bytes), human_bytes(s.memory.peak_bytes)});
  return table(std::move(rows), width);
}

// What a rank does comes last because it may be long.
std::string ranks(const RunStatus& s, Moment moment, size_t width) {
  if (s.ranks.empty()) return {};
  const bool now = moment == Moment::kNow;
  std::vector<Row> rows{{"rank", "host", ">pid", ">done", ">resident", ">in flight", ">last sign", now ? "does" : "did"}};
  for (const engine::RankSeen& r : s.ranks) {
    rows.push_back({std::to_string(r.rank), r.host, std::to_string(r.pid), std::to_string(r.last.iterations_done),
                    human_bytes(r.last.resident_bytes), count_text(r.last.tokens_in_flight),
                    human_seconds(r.silent_seconds) + (now ? " ago" : " before"), r.last.doing});
  }
  return table(of_moment(std::move(rows), moment, 3), width);
}

std::string executors(const RunStatus& s, Moment moment, size_t width) {
  const char* const at_work = moment == Moment::kNow ? "works on" : "worked on";
  std::vector<Row> rows{{"executor", ">threads", ">busy", at_work, ">for", ">queued"}};
  for (const RunStatus::Executor& e : s.executors) {
    const bool idle = e.working_on.empty();
    rows.push_back({e.name, std::to_string(e.threads), share_text(e.busy_seconds, s.seconds), idle ? "-" : e.working_on,
                    idle ? "" : human_seconds(e.for_seconds), std::to_string(e.queued)});
  }
  return table(of_moment(std::move(rows), moment, 3), width);
}

// `done`: micro-batches, of which `held` are in a barrier. What a node waits for comes last because it may be long.
std::string nodes(const RunStatus& s, Moment moment, size_t width) {
  const char* const waits = moment == Moment::kNow ? "waits for" : "waited for";
  std::vector<Row> rows{{"node", "executor", ">busy", ">done", ">tok/s", ">queued", ">held", waits}};
  for (const RunStatus::Node& n : s.nodes) {
    const bool worked = n.tokens > 0 && n.busy_seconds > 0;
    rows.push_back({n.name, n.executor, share_text(n.busy_seconds, s.seconds), std::to_string(n.micro_batches),
                    worked ? human_count(static_cast<double>(n.tokens) / n.busy_seconds) : "", std::to_string(n.queued),
                    n.held > 0 ? std::to_string(n.held) : "", n.waits_for});
  }
  return table(of_moment(std::move(rows), moment, 5), width);
}

// Edges with nothing on them would hide the others.
std::string edges(const RunStatus& s, size_t width) {
  std::vector<Row> rows{{"edge", ">micro-batches", ">tokens", ">bytes"}};
  for (const RunStatus::Edge& e : s.edges) {
    if (e.micro_batches == 0 && e.bytes == 0) continue;
    rows.push_back({e.from + " -> " + e.to, std::to_string(e.micro_batches), count_text(e.tokens), human_bytes(e.bytes)});
  }
  return rows.size() > 1 ? table(std::move(rows), width) : std::string();
}

std::string value_text(double value) {
  char text[32];
  const bool whole = std::abs(value) < 1e6 && value == std::floor(value);
  if (!std::isfinite(value)) return "not finite";
  std::snprintf(text, sizeof text, whole ? "%.0f" : "%.4g", value);
  return text;
}

template <size_t n>
bool is_one_of(const std::string& name, const std::array<std::string_view, n>& names) {
  return std::ranges::find(names, name) != names.end();
}

// What the nodes say of the training; after it, because it hardly changes, how much there was of everything.
engine::MetricRow metrics_to_show(const engine::MetricRow& metrics) {
  constexpr std::array<std::string_view, 3> kInHeading{"iteration", "policy_version", "policy_lag"};
  constexpr std::array<std::string_view, 5> kCounts{engine::metrics::kGroups, engine::metrics::kSamples, engine::metrics::kTokens,
                                                    engine::metrics::kSampledTokens, engine::metrics::kActionTokens};
  engine::MetricRow shown;
  std::ranges::copy_if(metrics, std::back_inserter(shown), [&](const auto& metric) {
    return !engine::depends_on_timing(metric.first) && !is_one_of(metric.first, kInHeading);
  });
  std::stable_partition(shown.begin(), shown.end(), [&](const auto& metric) { return !is_one_of(metric.first, kCounts); });
  return shown;
}

std::string metrics_heading(const engine::MetricRow& metrics) {
  std::string text = "metrics of the last iteration";
  for (const auto& [name, value] : metrics) {
    if (name == "iteration") text = "iteration " + value_text(value);
    if (name == "policy_version") text += ", sampled with version " + value_text(value);
    if (name == "engine/weight_updates") text += " and later ones";
  }
  return text;
}

// As many columns as fit, filled downwards, in the order of the metrics.
std::string last_metrics(const engine::MetricRow& metrics, size_t width) {
  const engine::MetricRow shown = metrics_to_show(metrics);
  if (shown.empty()) return {};
  size_t name_width = 0, value_width = 0;
  for (const auto& [name, value] : shown) {
    name_width = std::max(name_width, printed_width(name));
    value_width = std::max(value_width, value_text(value).size());
  }
  const size_t cell = name_width + 2 + value_width;
  const size_t columns = std::max<size_t>(1, (width + kGap.size()) / (cell + kGap.size()));
  const size_t rows = std::min(kMostMetricRows, (shown.size() + columns - 1) / columns);
  std::string text = "\n" + line(metrics_heading(metrics), width);
  for (size_t row = 0; row < rows; ++row) {
    std::string cells;
    for (size_t i = row; i < std::min(shown.size(), rows * columns); i += rows) {
      cells += padded(shown[i].first, name_width, false) + "  " + padded(value_text(shown[i].second), value_width, true) +
               std::string(kGap);
    }
    text += line(cells, width);
  }
  if (shown.size() > rows * columns)
    text += line("and " + std::to_string(shown.size() - rows * columns) + " more in metrics.jsonl", width);
  return text;
}

}  // namespace

std::string top_text(const TopView& view, size_t width) {
  const RunStatus& status = view.status;
  const size_t bar_width = width >= kWide ? kWideBar : kNarrowBar;
  const Moment moment = moment_of(view);
  return line(progress(view, bar_width), width) + "\n" + line(budget(status, bar_width), width) + line(memory(status), width) +
         ranks(status, moment, width) + memory_classes(status, width) + executors(status, moment, width) +
         nodes(status, moment, width) + (moment == Moment::kNone ? std::string() : edges(status, width)) +
         last_metrics(view.metrics, width);
}

}  // namespace sluice::cli
