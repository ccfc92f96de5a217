#include "cli/report/report_run.h"

#include <algorithm>
#include <chrono>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/files/file.h"
#include "base/files/path_kind.h"
#include "base/text/strings.h"
#include "base/text/url_passwords.h"
#include "cli/pipeline/load.h"
#include "cli/pipeline/plugin_loading.h"
#include "cli/report/report_graph.h"
#include "cli/run_folder/damaged_lines.h"
#include "cli/run_folder/file_of_run.h"
#include "dsl/parse.h"
#include "engine/contract/run_folder.h"

namespace sluice::cli {
namespace fs = std::filesystem;
namespace {

constexpr int64_t kMostPipelineBytes = 1 << 20;  // as of any pipeline file

// Null: it is not there, or damaged.
Json read_if_there(const fs::path& folder, const char* name, Problems& damage) {
  const auto file = file_of_run(folder, name);
  return file ? read_or_note([&] { return read_json(*file); }, damage).value_or(Json()) : Json();
}

Json report_note(Severity severity, std::string text) {
  return {{"severity", severity_name(severity)}, {"text", std::move(text)}};
}

// With a long file hardly a line is sound where many are not: the first ones tell enough.
void add_damage(const Problems& damage, Json& run) {
  constexpr size_t kTold = 5;
  for (size_t i = 0; i < std::min(damage.size(), kTold); ++i) {
    const std::string file = damage[i].where.known() ? damage[i].where.source->name + ": " : std::string();
    run["notes"].push_back(report_note(Severity::kError, "left out, as it is damaged: " + file + damage[i].message));
  }
  if (damage.size() > kTold)
    run["notes"].push_back(
        report_note(Severity::kError, "and " + std::to_string(damage.size() - kTold) + " more lines or files"));
}

// Without entries that are no text or number, as the page needs them to be.
Json entries_of(const fs::path& folder, const char* file, const std::vector<std::pair<const char*, Json>>& absent,
                Problems& damage) {
  const Json there = read_if_there(folder, file, damage);
  Json entries = Json::object();
  for (const auto& [name, value] : absent) {
    const auto found = there.is_object() ? there.find(name) : there.end();
    const bool fits = found != there.end() && (value.is_string() ? found->is_string() : found->is_number());
    entries[name] = fits ? *found : value;
    if (!fits && found != there.end())
      damage.push_back({.message = (folder / file).string() + ": " + name + " is no " + (value.is_string() ? "text" : "number")});
  }
  return entries;
}

Json status_of(const fs::path& folder, Problems& damage) {
  return entries_of(folder, engine::kStatusFile,
                    {{"state", "not known"}, {"seconds", 0.0}, {"iterations", 0}, {"iterations_done", 0}}, damage);
}

// A run whose process was killed has "running" as its last word.
void add_state(const Json& status, Watch watch, Json& run) {
  run.update(status);
  const std::string state = run["state"];
  if (state != "done" && !(watch == Watch::kLive && state == "running"))
    run["notes"].push_back(
        report_note(Severity::kWarning, "the run has not come to its end: its last state is " + sluice::quoted(state)));
}

void add_times(const fs::path& metrics, Json& run) {
  constexpr double kMost = 1e9;  // of a damaged file: a clock holds no more
  const auto ended = changed_at(metrics);
  const auto began = ended - std::chrono::duration_cast<std::chrono::system_clock::duration>(
                                 std::chrono::duration<double>(std::clamp(run["seconds"].get<double>(), 0.0, kMost)));
  run["began"] = utc_text(std::chrono::system_clock::to_time_t(began));
  run["ended"] = utc_text(std::chrono::system_clock::to_time_t(ended));
}

void add_memory(const fs::path& folder, Json& run, Problems& damage) {
  const size_t before = damage.size();
  const Json sums = entries_of(folder, engine::kMemoryFile, {{"planned_bytes", 0.0}, {"peak_bytes", 0.0}}, damage);
  run["memory"] = damage.size() == before ? read_if_there(folder, engine::kMemoryFile, damage) : Json();
  const double planned = sums["planned_bytes"], peak = sums["peak_bytes"];
  if (planned > 0 && peak > planned)
    run["notes"].push_back(report_note(
        Severity::kWarning, "memory went beyond what was planned: " + human_bytes(peak) + " of " + human_bytes(planned)));
}

// What the checks say of the pipeline now: models and data may have gone since.
Json problems_of(const fs::path& pipeline) {
  Problems problems;
  try {
    problems = check_pipeline({.file = pipeline}).warnings;
  } catch (const UserError& error) {
    problems = error.problems();
  }
  Json notes = Json::array();
  for (const Problem& problem : problems) {
    if (problem.kind != kPluginNotLoaded) notes.push_back(report_note(problem.severity, problem.message));
  }
  return notes;
}

std::string name_of_run(const fs::path& folder) {
  const fs::path whole = absolute_path(folder).lexically_normal();
  return (whole.has_filename() ? whole : whole.parent_path()).filename().string();
}

}  // namespace

RunReport::RunReport(fs::path folder, size_t most_samples, Watch watch)
    : folder_(std::move(folder)), most_samples_(most_samples), watch_(watch), name_(name_of_run(folder_)) {
  if (!file_of_run(folder_, engine::kMetricsFile) && !file_of_run(folder_, engine::kPipelineFile))
    throw UserError(folder_.string() + " is not the folder of a run: it has neither metrics.jsonl nor pipeline.toml",
                    "name the folder of a run, such as runs/ppo-20260131-180000");
}

void RunReport::look_at_pipeline(Json& run, Problems& damage) {
  const auto path = file_of_run(folder_, engine::kPipelineFile);
  if (!path) return;
  std::string text = read_file(*path, kMostPipelineBytes);
  if (!samples_ || text != pipeline_) {
    samples_.emplace(folder_, dsl::load_pipeline(*path, {}).spec, most_samples_);
    problems_ = problems_of(*path);
    pipeline_ = std::move(text);
  }
  run["pipeline"] = without_passwords(pipeline_);
  run["samples"] = samples_->now(damage);
  for (const Json& problem : problems_) run["notes"].push_back(problem);
}

void RunReport::look_at_graph(Json& run) {
  const auto path = file_of_run(folder_, engine::kPipelineGraphFile);
  if (!path) return;
  std::string text = read_file(*path);
  if (graph_.is_null() || text != graph_text_) {
    graph_ = report_graph(text);
    graph_text_ = std::move(text);
  }
  run["graph"] = graph_;
}

Json RunReport::now() {
  Json run{{"name", name_},
           {"folder", folder_.string()},
           {"notes", Json::array()},
           {"series", Json::object()},
           {"samples", Json::array()},
           {"pipeline", ""},
           {"graph", nullptr}};
  Problems damage;
  add_state(status_of(folder_, damage), watch_, run);
  if (const auto metrics = file_of_run(folder_, engine::kMetricsFile)) {
    if (!series_) series_.emplace(*metrics);
    run["series"] = series_->thinned_now();
    damage.insert(damage.end(), series_->damage().begin(), series_->damage().end());
    add_times(*metrics, run);
  }
  add_memory(folder_, run, damage);
  look_at_pipeline(run, damage);
  look_at_graph(run);
  add_damage(damage, run);
  return run;
}

std::string RunReport::stamp() const {
  Problems of_status;  // told by now()
  std::string stamp = status_of(folder_, of_status)["state"];
  const auto add = [&stamp](const fs::path& file) {
    stamp += " " + std::to_string(file_bytes(file)) + " " + std::to_string(changed_at(file).time_since_epoch().count());
  };
  for (const char* name : {engine::kMetricsFile, engine::kMemoryFile, engine::kPipelineFile, engine::kPipelineGraphFile}) {
    if (const auto file = file_of_run(folder_, name)) add(*file);
  }
  for (const fs::path& file : samples_ ? samples_->files() : std::vector<fs::path>()) add(file);
  return stamp;
}

}  // namespace sluice::cli
