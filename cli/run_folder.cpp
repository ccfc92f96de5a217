#include "cli/run_folder.h"

#include <ctime>
#include <string>

#include "base/error.h"
#include "base/file.h"
#include "engine/graph_text.h"
#include "engine/plan_text.h"

namespace sluice::cli {
namespace fs = std::filesystem;
namespace {

fs::path default_folder(const std::string& name) {
  char time[32];
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  std::strftime(time, sizeof time, "%Y%m%d-%H%M%S", ::localtime_r(&now, &local));
  const fs::path first = fs::path("runs") / (name + "-" + time);
  fs::path folder = first;
  for (int n = 2; fs::exists(folder); ++n) folder = first.string() + "-" + std::to_string(n);
  return folder;
}

}  // namespace

fs::path make_run_folder(const fs::path& wanted, const engine::Plan& plan) {
  const fs::path folder = wanted.empty() ? default_folder(plan.pipeline.name) : wanted;
  if (fs::exists(folder / "metrics.jsonl")) {
    throw UserError("the run folder " + folder.string() + " already holds a run", "choose another --run-dir, or remove that one");
  }
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw UserError("cannot create the run folder " + folder.string() + ": " + error.message(), "choose another place with --run-dir");
  write_file_atomically(folder / "pipeline.toml", engine::config_text(plan));
  write_file_atomically(folder / "pipeline.dot", engine::dot_text(plan));
  return folder;
}

void remove_run_folder(const fs::path& folder) {
  std::error_code ignored;
  fs::remove(folder / "pipeline.toml", ignored);
  fs::remove(folder / "pipeline.dot", ignored);
  fs::remove(folder, ignored);  // only when it is empty now
}

}  // namespace sluice::cli
