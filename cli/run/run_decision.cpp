#include "cli/run/run_decision.h"

#include "base/files/path_kind.h"
#include "base/json/json.h"

namespace sluice::cli {

std::string told_of(const RunStart& start) {
  Json told{{"folder", absolute_path(start.folder).string()},
            {"accept_changes", start.accept_changes},
            {"from", start.from ? absolute_path(start.from->place.folder).string() : ""},
            {"iterations", start.from ? start.from->place.iterations : 0}};
  return told.dump();
}

std::string told_of_nothing() { return "{}"; }

std::optional<RunStart> start_as_told(const std::string& told, Ranks& ranks) {
  const Json decision = Json::parse(told);
  if (decision.empty()) return std::nullopt;
  RunStart start{.ranks = ranks, .folder = decision["folder"].get<std::string>()};
  start.accept_changes = decision["accept_changes"].get<bool>();
  const std::string from = decision["from"].get<std::string>();
  if (!from.empty() && !ranks.came_back()) {  // that one gets its weights from the others
    const engine::CheckpointPlace place{.iterations = decision["iterations"].get<int64_t>(), .folder = from};
    start.from = ResumePoint{place, engine::read_manifest(place.folder)};
  }
  return start;
}

}  // namespace sluice::cli
