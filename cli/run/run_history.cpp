#include "cli/run/run_history.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <iterator>
#include <numeric>
#include <span>
#include <utility>

#include "base/files/path_kind.h"
#include "base/text/printable.h"
#include "base/text/strings.h"
#include "cli/command/run_words.h"
#include "cli/run_folder/shown_metrics.h"
#include "engine/contract/run_folder.h"
#include "engine/observe/engine_metrics.h"

namespace sluice::cli {
namespace {

namespace metrics = engine::metrics;

constexpr size_t kFirst = 3;
constexpr size_t kLast = 10;
constexpr size_t kPaceOf = 4;         // iterations
constexpr size_t kSummaryCurve = 40;  // cells

double zero_if_missing(double value) { return std::isnan(value) ? 0 : value; }

double mean_of(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// What is to improve, of the path whose metrics have that prefix; empty: none of its nodes has recorded a score or a loss.
std::string target_of(const engine::IterationReport& report, const std::string& prefix = {}) {
  const auto is_there = [&](const char* name) { return !std::isnan(report.metric(engine::prefixed_metric(prefix, name))); };
  const char* const target = metric_to_improve(is_there);
  return target == nullptr ? std::string() : engine::prefixed_metric(prefix, target);
}

bool trains(const engine::Plan& plan) {
  return std::ranges::any_of(plan.models, [](const engine::PlanModel& model) { return model.usage.updated; });
}

// "the first 3 and the last 10 iterations", "the first and the last iteration"
std::string windows_text(size_t first, size_t last) {
  const auto counted = [](const char* word, size_t count) {
    return std::string("the ") + word + (count > 1 ? " " + std::to_string(count) : "");
  };
  return counted("first", first) + " and " + counted("last", last) + (last > 1 ? " iterations" : " iteration");
}

}  // namespace

RunHistory::RunHistory(const engine::Plan& plan, int64_t iterations_before) : plan_(plan), before_(iterations_before) {
  for (const engine::PlanPath& path : plan.paths) {
    const std::string& source = plan.nodes[static_cast<size_t>(path.source)].name;
    if (path.measures()) measured_.push_back({.path = &path, .source = source, .values = {}});
  }
}

void RunHistory::add_measured(const engine::IterationReport& report) {
  for (Measured& measured : measured_) {
    const std::string name = target_of(report, measured.source);
    if (!name.empty()) measured.values.push_back({report.iteration, report.metric(name)});
  }
}

void RunHistory::add(const engine::IterationReport& report) {
  const std::lock_guard lock(mutex_);
  latest_ = report;
  ++iterations_;
  const auto value_of = [&](const char* name) { return zero_if_missing(report.metric(name)); };
  totals_.samples += value_of(metrics::kSamples);
  totals_.tokens += value_of(metrics::kTokens);
  totals_.sampled_tokens += value_of(metrics::kSampledTokens);
  totals_.seconds += value_of(metrics::kIterationSeconds);
  totals_.rollout_seconds += value_of(metrics::kRolloutSeconds);
  totals_.train_seconds += value_of(metrics::kTrainSeconds);
  totals_.overlap_seconds += value_of(metrics::kOverlapSeconds);
  last_.push_back({value_of(metrics::kTokens), value_of(metrics::kIterationSeconds)});
  if (last_.size() > kPaceOf) last_.pop_front();
  totals_.tokens_in_flight_max = std::max(totals_.tokens_in_flight_max, value_of(metrics::kTokensInFlightMax));

  add_measured(report);
  if (target_.empty()) target_ = target_of(report);
  if (target_.empty()) return;
  const double value = report.metric(target_);
  if (std::isnan(value)) return;
  targets_.push_back(value);
}

double RunHistory::tokens_per_second() const {
  Pace sum;
  for (const Pace& one : last_) {
    sum.tokens += one.tokens;
    sum.seconds += one.seconds;
  }
  return sum.seconds > 0 ? sum.tokens / sum.seconds : 0;
}

double RunHistory::seconds_left() const {
  const std::lock_guard lock(mutex_);
  if (iterations_ == 0) return 0;
  return totals_.seconds / static_cast<double>(iterations_) *
         static_cast<double>(plan_.pipeline.iterations - before_ - iterations_);
}

std::vector<Piece> RunHistory::latest() const {
  const std::lock_guard lock(mutex_);
  if (iterations_ == 0) return {};
  std::vector<Piece> line{
      {"iteration " + std::to_string(before_ + iterations_) + "/" + std::to_string(plan_.pipeline.iterations)}};
  const auto add_if_there = [&](const char* label, const char* name, int digits, Ink ink) {
    const double value = latest_.metric(name);
    if (std::isnan(value)) return;
    line.push_back({std::string("   ") + label + " "});
    line.push_back({fixed(value, digits), ink});
  };
  if (target_ == kScoreMetric)
    add_if_there("score", kScoreMetric, 3, Ink::kBold);
  else if (!target_.empty())
    add_if_there("loss", target_.c_str(), 4, Ink::kPlain);
  for (const Measured& measured : measured_) {
    if (measured.values.empty()) continue;
    line.push_back({"   " + measured.source + " "});
    line.push_back({fixed(measured.values.back().value, 3), Ink::kBold});
  }
  add_if_there("KL", kKlMetric, 4, Ink::kPlain);
  if (const double pace = tokens_per_second(); pace > 0) line.push_back({"   " + human_count(pace) + " tok/s"});
  return line;
}

std::string RunHistory::score_curve(size_t iterations, size_t width, bool unicode) const {
  const std::lock_guard lock(mutex_);
  const size_t shown = iterations == 0 ? targets_.size() : std::min(iterations, targets_.size());
  return curve({targets_.end() - static_cast<std::ptrdiff_t>(shown), targets_.end()}, width, unicode);
}

// Of a short run the windows shrink, so that no iteration is in both.
std::string RunHistory::score_text(const Abilities& able) const {
  if (targets_.empty()) return {};  // no node records a score or a loss
  const std::string label = target_ == kScoreMetric ? "  score       " : "  loss        ";
  if (targets_.size() == 1) return label + fixed(targets_.front(), 3) + "\n";
  const size_t first = std::min(kFirst, targets_.size() / 2), last = std::min(kLast, targets_.size() - first);
  const std::span<const double> all(targets_);
  std::string text = label + fixed(mean_of(all.first(first)), 3) + " -> " + fixed(mean_of(all.last(last)), 3) + " (";
  text += (first > 1 || last > 1 ? "mean of " : "") + windows_text(first, last) + ")";
  if (able.cursor) text += "  " + inked(curve(targets_, kSummaryCurve, able.unicode), Ink::kBlue, able.colour);
  return text + "\n";
}

// "  held_out    0.464 before training -> 0.982 after iteration 120 (measured 7 times)"
std::string RunHistory::measured_text(const Measured& measured) {
  if (measured.values.empty()) return {};
  const auto text_of = [&](const Measured::Value& value) {
    const bool before = measured.path->settings.before_training && value.iteration == 0;
    return fixed(value.value, 3) + (before ? " before training" : " after iteration " + std::to_string(value.iteration + 1));
  };
  std::string text = "  " + measured.source;
  text.resize(std::max<size_t>(text.size() + 1, 14), ' ');
  text += text_of(measured.values.front());
  const size_t count = measured.values.size();
  if (count > 1)
    text += " -> " + text_of(measured.values.back()) + " (measured " + plural(static_cast<int64_t>(count), "time") + ")";
  return text + "\n";
}

// What scorers and evaluations tell, beside the score: of a run that trains nothing it is the result.
std::string RunHistory::result_text() const {
  if (trains(plan_)) return {};
  engine::MetricRow results;
  std::ranges::copy_if(latest_.metrics, std::back_inserter(results), [&](const auto& metric) {
    return metric.first.starts_with("reward/") && metric.first != target_ && !std::isnan(metric.second);
  });
  size_t width = 0;
  for (const auto& [name, value] : results) width = std::max(width, name.size());
  std::string text;
  for (auto [name, value] : results) {
    std::array<char, 32> number;
    std::snprintf(number.data(), number.size(), "%.4g", value);
    name.resize(width, ' ');
    text += (text.empty() ? "  measured    " : "              ") + name + "  " + number.data();
    text += iterations_ > 1 ? " (the last iteration)\n" : "\n";
  }
  return text;
}

std::string RunHistory::dropped_text() const {
  const double dropped = zero_if_missing(latest_.metric("data/rows_dropped"));
  if (dropped == 0) return {};
  return "  data        " + fixed(dropped, 0) + " of " + fixed(zero_if_missing(latest_.metric("data/rows_read")), 0) +
         " rows left out: too long\n";
}

// Where the folder was removed or renamed, its status may have been written anew since, but nothing that a run begins with.
std::string RunHistory::folder_text(const engine::RunSummary& run, const std::string& folder) const {
  const std::string text = "  run folder  " + printable(folder);
  if (!real_path(std::filesystem::path(folder) / engine::kPipelineFile))
    return text + " (gone: removed or renamed while the run went on)";
  if (run.last_checkpoint.empty()) return text;
  const bool to_be_resumed = run.end == engine::RunEnd::kInterrupted;
  return text + (trains(plan_) ? " (checkpoint/ holds the trained models)" : "") +
         (to_be_resumed ? "\n  resume with " + printable(command_to_go_on(plan_, folder)) : std::string());
}

std::string RunHistory::summary(const engine::RunSummary& run, const std::string& folder, const Abilities& able) const {
  const std::lock_guard lock(mutex_);
  const Totals& t = totals_;
  const char* ending = run.end == engine::RunEnd::kDone          ? "finished"
                       : run.end == engine::RunEnd::kInterrupted ? "interrupted"
                                                                 : "failed";
  const Ink ink = run.end == engine::RunEnd::kDone          ? Ink::kGreen
                  : run.end == engine::RunEnd::kInterrupted ? Ink::kYellow
                                                            : Ink::kRed;
  std::string text = plan_.pipeline.name + " " + inked(ending, ink, able.colour) + ": " + plural(run.iterations, "iteration");
  if (plan_.ranks > 1) text += " on " + plural(plan_.ranks, "rank");
  text +=
      (before_ > 0 ? ", the last " + std::to_string(run.iterations - before_) : "") + " in " + human_seconds(run.seconds) + "\n";
  if (!run.stopped.empty()) text += "  stopped     " + run.stopped + "\n";
  const bool data_ended = run.end == engine::RunEnd::kDone && run.stopped.empty() && run.iterations < plan_.pipeline.iterations;
  if (data_ended)
    text += "  stopped     the data have ended: " + std::to_string(plan_.pipeline.iterations) + " iterations were asked for\n";
  text += score_text(able) + result_text();
  for (const Measured& measured : measured_) text += measured_text(measured);
  text += "  samples     " + std::to_string(static_cast<int64_t>(t.samples)) + " of " +
          std::to_string(static_cast<int64_t>(t.tokens)) + " tokens in all";
  if (t.sampled_tokens > 0) text += ", " + std::to_string(static_cast<int64_t>(t.sampled_tokens)) + " sampled";
  text += "\n" + dropped_text() + "  throughput  ";
  if (t.rollout_seconds > 0) text += "generation " + human_count(t.sampled_tokens / t.rollout_seconds) + " sampled tok/s, ";
  if (t.train_seconds > 0) text += "training " + human_count(t.tokens / t.train_seconds) + " tok/s, ";
  text += "whole run " + human_count(t.tokens / std::max(t.seconds, 1e-9)) + " tok/s\n";
  text += "  busy        generation " + percent(t.rollout_seconds, t.seconds) + ", training " +
          percent(t.train_seconds, t.seconds) +
          (plan_.has_roles() ? std::string() : ", both at once " + percent(t.overlap_seconds, t.seconds)) + " of the time\n";
  text += "  budget      at most " + human_count(t.tokens_in_flight_max) + " of " +
          human_count(static_cast<double>(plan_.token_capacity())) + " tokens in flight\n";
  const char* label = "  memory      ";
  for (const std::string& line : engine::memory_lines(run.memory)) text += std::exchange(label, "              ") + line + "\n";
  return text + folder_text(run, folder);
}

}  // namespace sluice::cli
