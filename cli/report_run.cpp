#include "cli/report_run.h"

#include <chrono>
#include <string>

#include "base/error.h"
#include "base/file.h"
#include "base/path_kind.h"
#include "base/strings.h"
#include "cli/load.h"
#include "cli/plugin_loading.h"
#include "cli/report_files.h"
#include "cli/report_graph.h"
#include "cli/report_samples.h"
#include "cli/report_series.h"
#include "dsl/parse.h"

namespace sluice::cli {
namespace fs = std::filesystem;
namespace {

constexpr int64_t kMostPipelineBytes = 1 << 20;  // as of any pipeline file

Json read_if_there(const fs::path& folder, const char* name) {
  const auto file = file_of_run(folder, name);
  return file ? read_json(*file) : Json();
}

Json note(Severity severity, std::string text) {
  return {{"severity", severity == Severity::kError ? "error" : "warning"}, {"text", std::move(text)}};
}

// A run whose process was killed has "running" as its last word.
void add_state(const Json& status, Json& run) {
  run["state"] = status.value("state", "not known");
  run["seconds"] = status.value("seconds", 0.0);
  run["iterations"] = status.value("iterations", int64_t{0});
  run["iterations_done"] = status.value("iterations_done", int64_t{0});
  const std::string state = run["state"];
  if (state != "done")
    run["notes"].push_back(
        note(Severity::kWarning, "the run has not come to its end: its last state is " + sluice::quoted(state)));
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
    run["notes"].push_back(
        note(Severity::kWarning, "memory went beyond what was planned: " + human_bytes(peak) + " of " + human_bytes(planned)));
}

// What the checks say of the pipeline now: models and data may have gone since.
void add_problems(const fs::path& pipeline, Json& run) {
  Problems problems;
  try {
    problems = check_pipeline({.file = pipeline}).warnings;
  } catch (const UserError& error) {
    problems = error.problems();
  }
  for (const Problem& problem : problems) {
    if (problem.kind != kPluginNotLoaded) run["notes"].push_back(note(problem.severity, problem.message));
  }
}

void add_pipeline(const fs::path& path, size_t most_samples, const fs::path& folder, Json& run) {
  run["pipeline"] = read_file(path, kMostPipelineBytes);
  const engine::PipelineSpec spec = dsl::load_pipeline(path, {}).spec;
  run["samples"] = report_samples(folder, spec, most_samples);
  add_problems(path, run);
}

}  // namespace

Json report_of_run(const fs::path& folder, size_t most_samples) {
  const auto metrics = file_of_run(folder, "metrics.jsonl");
  if (!metrics)
    throw UserError(folder.string() + " is not the folder of a run: it has no metrics.jsonl",
                    "name the folder of a run, such as runs/ppo-20260131-180000");
  const fs::path whole = absolute_path(folder).lexically_normal();
  Json run{{"name", (whole.has_filename() ? whole : whole.parent_path()).filename().string()},
           {"folder", folder.string()},
           {"notes", Json::array()},
           {"series", report_series(*metrics)},
           {"samples", Json::array()},
           {"pipeline", ""},
           {"graph", nullptr}};
  const Json status = read_if_there(folder, "status.json");
  add_state(status.is_object() ? status : Json::object(), run);
  add_times(*metrics, run);
  add_memory(read_if_there(folder, "memory.json"), run);
  if (const auto pipeline = file_of_run(folder, "pipeline.toml")) add_pipeline(*pipeline, most_samples, folder, run);
  if (const auto dot = file_of_run(folder, "pipeline.dot")) run["graph"] = report_graph(read_file(*dot));
  return run;
}

}  // namespace sluice::cli
