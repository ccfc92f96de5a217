#include "tests/engine/run_outcome.h"

#include <gtest/gtest.h>

#include <ostream>
#include <sstream>

#include "base/files/file.h"
#include "base/json/json.h"
#include "engine/checkpoint/checkpoint_folder.h"
#include "engine/contract/world/metric_spec.h"

namespace sluice::engine {

namespace fs = std::filesystem;

std::vector<std::string> metrics_of(const fs::path& folder) {
  std::vector<std::string> lines;
  std::istringstream text(read_file(folder / "metrics.jsonl"));
  for (std::string line; std::getline(text, line);) {
    Json kept = Json::object();
    const Json metrics = parse_json(line, "metrics.jsonl");
    for (const auto& [name, value] : metrics.items()) {
      if (!depends_on_timing(name)) kept[name] = value;
    }
    lines.push_back(kept.dump());
  }
  return lines;
}

// Of what is told by its micro-batch or as an end.
std::map<std::string, int> slices_of(const fs::path& folder) {
  std::map<std::string, int> slices;
  for (const Json& event : read_json(folder / "trace.json")) {
    if (event["ph"] != "X" || !event["args"].contains("micro_batch")) continue;
    ++slices[event["name"].get<std::string>() + " " + event["args"]["iteration"].dump() + " " +
             event["args"]["micro_batch"].dump()];
  }
  return slices;
}

RunOutcome outcome_of(const fs::path& folder) {
  const fs::path weights = folder / "checkpoint" / "policy" / "weights";
  return {.metrics = metrics_of(folder),
          .slices = slices_of(folder),
          .weights = fs::exists(weights) ? read_file(weights) : std::string(),
          .states = read_manifest(folder / "checkpoint").nodes};
}

void PrintTo(const RunOutcome& outcome, std::ostream* out) {
  for (const std::string& line : outcome.metrics) *out << line << "\n";
  for (const auto& [name, count] : outcome.slices) *out << name << " x" << count << "\n";
  *out << "weights " << outcome.weights << "\n";
}

fs::path newest_checkpoint(const fs::path& folder) {
  const auto [place, damaged] = newest_intact(folder);
  EXPECT_TRUE(damaged.empty());
  return place ? place->folder : fs::path();
}

void start_over(const fs::path& folder) {
  fs::remove_all(folder);
  fs::create_directories(folder);
}

}  // namespace sluice::engine
