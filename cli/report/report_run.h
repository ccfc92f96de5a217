#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>

#include "base/error.h"
#include "base/json/json.h"
#include "cli/report/report_samples.h"
#include "cli/run_folder/metric_series.h"

namespace sluice::cli {

enum class Watch { kOnce, kLive };

/// All that a report tells of one run, which may go on meanwhile: what does not change is read once. One thread.
class RunReport {
 public:
  /// Of a folder that was copied some files may be missing. `watch`: to who looks once, a run that goes on is one that has not
  /// ended. Throws UserError naming what is no run.
  RunReport(std::filesystem::path folder, size_t most_samples, Watch watch);

  /// As the script of the page reads it:
  ///   {"name", "folder", "state", "began", "ended", "seconds", "iterations", "iterations_done", "series": RunSeries,
  ///    "samples": RunSamples, "memory": memory.json or null, "graph": report_graph(), "pipeline": the effective pipeline,
  ///    "notes": [{"severity", "text"}]}
  /// What is damaged is left out, and a note tells of it.
  Json now();

  /// Differs when now() would tell something else than before. That a run lives alone changes nothing.
  std::string stamp() const;

 private:
  void look_at_pipeline(Json& run, Problems& damage);
  void look_at_graph(Json& run);

  std::filesystem::path folder_;
  size_t most_samples_;
  Watch watch_;
  std::string name_;
  std::optional<RunSeries> series_;
  std::optional<RunSamples> samples_;
  std::string pipeline_;  // pipeline.toml, of which samples_ and problems_ are
  Json problems_ = Json::array();
  std::string graph_text_;  // pipeline.dot, of which graph_ is
  Json graph_;
};

}  // namespace sluice::cli
