#include "cli/report_run.h"

#include <algorithm>
#include <chrono>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/path_kind.h"
#include "base/strings.h"
#include "base/url_passwords.h"
#include "cli/damaged_lines.h"
#include "cli/file_of_run.h"
#include "cli/load.h"
#include "cli/plugin_loading.h"
#include "cli/report_graph.h"
#include "dsl/parse.h"

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
  return {{"severity", severity == Severity::kError ? "error" : "warning"}, {"text", std::move(text)}};
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

Json status_of(const fs::path& folder, Problems& damage) {
  Json status = read_if_there(folder, "status.json", damage);
  return status.is_object() ? status : Json::object();
}

// A run whose process was killed has "running" as its last word.
void add_state(const Json& status, Watch watch, Json& run) {
  run["state"] = status.value("state", "not known");
  run["seconds"] = status.value("seconds", 0.0);
  run["iterations"] = status.value("iterations", int64_t{0});
  run["iterations_done"] = status.value("iterations_done", int64_t{0});
  const std::string state = run["state"];
  if (state != "done" && !(watch == Watch::kLive && state == "running"))
    run["notes"].push_back(
        report_note(Severity::kWarning, "the run has not come to its end: its last state is " + sluice::quoted(state)));
}

void add_times(const fs::path& metrics, Json& run) {
  const auto ended = changed_at(metrics);
  const auto began = ended - std::chrono::duration_cast<std::chrono::system_clock::duration>(
                                 std::chrono::duration<double>(run["seconds"].get<double>()));
  run["began"] = utc_text(std::chrono::system_clock::to_time_t(began));
  run["ended"] = utc_text(std::chrono::system_clock::to_time_t(ended));
}

void add_memory(const Json& memory, Json& run) {
  run["memory"] = memory;
  if (!memory.is_object()) return;
  const double planned = memory.value("planned_bytes", 0.0), peak = memory.value("peak_bytes", 0.0);
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
  if (!file_of_run(folder_, "metrics.jsonl") && !file_of_run(folder_, "pipeline.toml"))
    throw UserError(folder_.string() + " is not the folder of a run: it has neither metrics.jsonl nor pipeline.toml",
                    "name the folder of a run, such as runs/ppo-20260131-180000");
}

void RunReport::look_at_pipeline(Json& run, Problems& damage) {
  const auto path = file_of_run(folder_, "pipeline.toml");
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
  const auto path = file_of_run(folder_, "pipeline.dot");
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
  if (const auto metrics = file_of_run(folder_, "metrics.jsonl")) {
    if (!series_) series_.emplace(*metrics);
    run["series"] = series_->thinned_now();
    damage.insert(damage.end(), series_->damage().begin(), series_->damage().end());
    add_times(*metrics, run);
  }
  add_memory(read_if_there(folder_, "memory.json", damage), run);
  look_at_pipeline(run, damage);
  look_at_graph(run);
  add_damage(damage, run);
  return run;
}

std::string RunReport::stamp() const {
  Problems of_status;  // told by now()
  std::string stamp = status_of(folder_, of_status).value("state", "");
  const auto add = [&stamp](const fs::path& file) {
    stamp += " " + std::to_string(file_bytes(file)) + " " + std::to_string(changed_at(file).time_since_epoch().count());
  };
  for (const char* name : {"metrics.jsonl", "memory.json", "pipeline.toml", "pipeline.dot"}) {
    if (const auto file = file_of_run(folder_, name)) add(*file);
  }
  for (const fs::path& file : samples_ ? samples_->files() : std::vector<fs::path>()) add(file);
  return stamp;
}

}  // namespace sluice::cli
