#include "cli/checkpoints/checkpoint_list.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/error.h"
#include "base/files/path_kind.h"
#include "base/json/json.h"
#include "base/text/shell_word.h"
#include "base/text/strings.h"
#include "cli/run_folder/damage_name.h"
#include "cli/run_folder/shown_metrics.h"
#include "engine/contract/run_folder.h"

namespace sluice::cli {
namespace fs = std::filesystem;
namespace {

using Row = std::vector<std::string>;

int64_t bytes_in(const fs::path& folder) {
  int64_t bytes = 0;
  for (const fs::path& entry : entries_of(folder)) {
    const PathKind kind = name_kind(entry);  // links are not followed: they may lead anywhere
    if (kind == PathKind::kFolder) bytes += bytes_in(entry);
    if (kind == PathKind::kFile) bytes += file_bytes(entry);
  }
  return bytes;
}

ListedCheckpoint look_at(const engine::CheckpointPlace& place) {
  ListedCheckpoint listed{.place = place, .manifest = {}, .bytes = 0, .damage = {}};
  if (const auto damage = engine::damage_of(place.folder)) listed.damage = damage_text(place.folder, *damage);
  try {
    listed.bytes = bytes_in(place.folder);
    listed.manifest = engine::read_manifest(place.folder);
  } catch (const UserError&) {
    // It is the damage, or the run that goes on removes it.
  }
  return listed;
}

double metric_of(const ListedCheckpoint& checkpoint, const std::string& name) {
  if (!checkpoint.manifest) return std::nan("");
  const auto found = std::ranges::find(checkpoint.manifest->metrics, name, &engine::MetricRow::value_type::first);
  return found == checkpoint.manifest->metrics.end() ? std::nan("") : found->second;
}

std::string best_by(const engine::Manifest& manifest) {
  for (const engine::EffectiveKey& key : manifest.pipeline) {
    const bool is_it = key.table == "checkpoint" && key.key == "keep_best" && key.text.size() > 2;
    if (is_it) return key.text.substr(1, key.text.size() - 2);
  }
  return {};
}

// What the list is to show; empty: no checkpoint has any of the metrics that tell how well a run does.
std::string metric_to_show(const std::vector<ListedCheckpoint>& checkpoints) {
  for (auto listed = checkpoints.rbegin(); listed != checkpoints.rend(); ++listed) {
    if (!listed->manifest) continue;
    std::vector<std::string> names{best_by(*listed->manifest), kScoreMetric};
    names.insert(names.end(), kLossMetrics.begin(), kLossMetrics.end());
    for (const std::string& name : names) {
      if (!std::isnan(metric_of(*listed, name))) return name;
    }
  }
  return {};
}

std::string value_text(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", value);
  return std::isnan(value) ? "" : text;
}

// Columns two spaces apart, the first to the right, the others to the left, without those in which nothing is.
std::string aligned(const std::vector<Row>& rows) {
  std::vector<size_t> widths(rows.front().size(), 0);
  for (const Row& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const Row& row : rows) {
    std::string line = "  " + std::string(widths[0] - row[0].size(), ' ') + row[0];
    for (size_t i = 1; i < row.size(); ++i) {
      if (widths[i] > 0) line += "  " + row[i] + std::string(widths[i] - row[i].size(), ' ');
    }
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

// Of a complete run, resume has nothing to do unless it is told more.
std::string how_to_go_on(int64_t newest, const std::string& run_folder, const std::optional<engine::RunStatus>& end) {
  const std::string resume = "rlhf-run resume " + shell_word(run_folder), from = " goes on from " + std::to_string(newest);
  if (!end || end->iterations_done != newest) return resume + from + "\n";
  if (newest < end->iterations)  // stop_when has ended it
    return "the run is complete: " + resume + " --set pipeline.stop_when.KEY=VALUE" + from + ", if that does not stop it\n";
  return "the run is complete: " + resume + " --set pipeline.iterations=N" + from + ", with N above it\n";
}

}  // namespace

std::vector<ListedCheckpoint> look_at_checkpoints(const fs::path& run_folder) {
  const auto places = engine::list_checkpoints(run_folder);
  if (places.empty() && !is_there(run_folder / engine::kPipelineFile)) {
    throw UserError(run_folder.string() + " is not the folder of a run: it has neither checkpoints nor pipeline.toml",
                    "name the folder of a run, such as runs/ppo-20260131-180000");
  }
  std::vector<ListedCheckpoint> listed;
  for (const engine::CheckpointPlace& place : places) {
    listed.push_back(look_at(place));
    if (!is_there(place.folder)) listed.pop_back();  // the run that goes on has removed it
  }
  return listed;
}

std::string checkpoints_text(const std::vector<ListedCheckpoint>& checkpoints, const std::string& run_folder,
                             const std::optional<engine::RunStatus>& end) {
  if (checkpoints.empty()) return run_folder + " has no checkpoints\n";
  const std::string metric = metric_to_show(checkpoints);
  std::vector<Row> rows = {{"iterations", "saved at", metric, "size", ""}};
  for (const ListedCheckpoint& listed : checkpoints) {
    rows.push_back({std::to_string(listed.place.iterations), listed.manifest ? listed.manifest->saved_at : "",
                    value_text(metric_of(listed, metric)), human_bytes(listed.bytes),
                    listed.damage.empty() ? "intact" : "damaged: " + listed.damage});
  }
  const auto newest =
      std::find_if(checkpoints.rbegin(), checkpoints.rend(), [](const auto& listed) { return listed.damage.empty(); });
  std::string text = aligned(rows);
  if (newest == checkpoints.rend()) return text + "none is intact\n";
  return text + how_to_go_on(newest->place.iterations, run_folder, end);
}

std::string checkpoints_json(const std::vector<ListedCheckpoint>& checkpoints) {
  Json list = Json::array();
  for (const ListedCheckpoint& listed : checkpoints) {
    Json metrics, saved_at;
    if (listed.manifest) {
      saved_at = listed.manifest->saved_at;
      metrics = Json::object();
      for (const auto& [name, value] : listed.manifest->metrics) metrics[name] = std::isfinite(value) ? Json(value) : Json();
    }
    list.push_back({{"iterations", listed.place.iterations},
                    {"folder", listed.place.folder.string()},
                    {"saved_at", saved_at},
                    {"bytes", listed.bytes},
                    {"metrics", metrics},
                    {"intact", listed.damage.empty()},
                    {"damage", listed.damage.empty() ? Json() : Json(listed.damage)}});
  }
  const Json all = {{"checkpoints", std::move(list)}};
  return all.dump(2, ' ', false, Json::error_handler_t::replace);
}

}  // namespace sluice::cli
