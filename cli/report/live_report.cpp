#include "cli/report/live_report.h"

#include <algorithm>
#include <exception>
#include <set>
#include <utility>

#include "base/files/path_kind.h"
#include "base/text/strings.h"

namespace sluice::cli {
namespace {

constexpr int kShareOfTime = 20;  // reading takes one part of so many

std::string moment() { return std::to_string(std::chrono::system_clock::now().time_since_epoch().count()); }

}  // namespace

std::vector<RunReport> readers_of(const std::vector<ReportedRun>& reported, Watch watch) {
  constexpr size_t kMostSamples = 160, kFewestSamples = 20;  // of all runs, of each
  std::vector<RunReport> runs;
  for (const ReportedRun& run : reported)
    runs.emplace_back(run.folder, std::max(kFewestSamples, kMostSamples / reported.size()), watch);
  return runs;
}

ReportState report_state(const std::vector<ReportedRun>& reported, std::vector<RunReport>& runs) {
  Json told = Json::array();
  std::vector<std::string> names, titles;
  for (size_t i = 0; i < runs.size(); ++i) {
    told.push_back(runs[i].now());
    names.push_back(told.back()["name"]);
    const ReportedRun& run = reported[i];
    const bool is_swept = !run.combination.empty();
    const std::string title = is_swept ? absolute_path(run.folder).parent_path().filename().string() : names.back();
    if (is_swept) told.back()["combination"] = run.combination;
    if (!is_swept || titles.empty() || titles.back() != title) titles.push_back(title);
  }
  const bool alike = std::set<std::string>(names.begin(), names.end()).size() < names.size();
  for (size_t i = 0; alike && i < names.size(); ++i) told[i]["name"] = reported[i].folder.string();
  return {.title = join(titles, ", "), .report = {{"runs", std::move(told)}}};
}

LiveReport::LiveReport(std::vector<ReportedRun> reported)
    : reported_(std::move(reported)), born_(moment()), runs_(readers_of(reported_, Watch::kLive)) {
  state_ = read();
}

std::string LiveReport::stamp() const {
  std::string stamp;
  for (const RunReport& run : runs_) stamp += run.stamp() + "; ";
  return stamp;
}

// What a run appends meanwhile has another stamp, and is read the next time.
std::shared_ptr<const ReportState> LiveReport::read() {
  stamp_ = stamp();
  auto state = std::make_shared<ReportState>(report_state(reported_, runs_));
  state->tag = "\"" + born_ + "-" + std::to_string(++read_count_) + "\"";
  state->report["tag"] = state->tag;
  return state;
}

std::shared_ptr<const ReportState> LiveReport::now() {
  const std::lock_guard lock(mutex_);
  const Clock::time_point began = Clock::now();
  if (began < not_before_) return state_;
  try {
    if (stamp() == stamp_ && state_->problem.empty()) return state_;
    state_ = read();
  } catch (const std::exception& error) {
    auto state = std::make_shared<ReportState>(*state_);
    state->problem = error.what();
    state_ = std::move(state);
  }
  not_before_ = Clock::now() + (Clock::now() - began) * (kShareOfTime - 1);
  return state_;
}

}  // namespace sluice::cli
