#include "engine/run/run_files.h"

#include <cmath>
#include <utility>

#include "base/error.h"
#include "base/json/json.h"

namespace sluice::engine {
namespace {

// One line of metrics.jsonl. JSON has no NaN: null.
std::string line_of(const IterationReport& report) {
  Json line;
  for (const auto& [name, value] : report.metrics) {
    const bool whole = std::abs(value) < 1e15 && value == std::floor(value);
    if (!std::isfinite(value))
      line[name] = nullptr;
    else if (whole)
      line[name] = static_cast<int64_t>(value);
    else
      line[name] = value;
  }
  return line.dump() + "\n";
}

// Those that a checkpoint does not name go when one resumes there.
std::map<std::string, int64_t> event_files(std::map<std::string, int64_t> files) {
  std::erase_if(files, [](const auto& file) { return !file.first.starts_with(kEventFilePrefix); });
  return files;
}

}  // namespace

RunFiles::RunFiles(Parts parts)
    : folder_(parts.folder),
      earlier_(event_files(std::move(parts.grown))),
      on_warning_(std::move(parts.on_warning)),
      metrics_(folder_.path / kMetricsFile, OutputFile::Mode::kAppend, *folder_.files),
      events_(folder_),
      recorder_(parts.plan),
      trace_(
          folder_.path / kTraceFile, parts.plan, parts.trace_begin_ns, [this] { warn_of_loss(kTraceFile); }, *folder_.files) {}

void RunFiles::write(const IterationReport& report) {
  recorder_.reported(report);
  metrics_.write(line_of(report));
  if (!events_go_on_) return;
  events_go_on_ = unless_lost(events_.name(), [&] { events_.scalars(report.iteration, wall_clock_seconds(), report.metrics); });
}

std::map<std::string, int64_t> RunFiles::lengths() const {
  std::map<std::string, int64_t> files = {{kMetricsFile, metrics_.size()}, {events_.name(), events_.bytes()}};
  files.insert(earlier_.begin(), earlier_.end());
  return files;
}

void RunFiles::close() {
  trace_.close();
  metrics_.close();
  if (events_go_on_) unless_lost(events_.name(), [this] { events_.close(); });
}

void RunFiles::write_costs() const {
  const Costs costs = recorder_.costs();
  if (costs.lengths.empty()) return;
  unless_lost(kCostsFile, [&] { write_file_atomically(folder_.path / kCostsFile, costs_json(costs), *folder_.files); });
}

void RunFiles::write_memory(const std::string& json) const {
  unless_lost(kMemoryFile, [&] { write_file_atomically(folder_.path / kMemoryFile, json, *folder_.files); });
}

bool RunFiles::unless_lost(const std::string& name, const std::function<void()>& write) const {
  try {
    write();
    return true;
  } catch (const UserError&) {
    warn_of_loss(name);
    return false;
  }
}

// In a catch block.
void RunFiles::warn_of_loss(const std::string& name) const {
  std::string why;
  try {
    throw;
  } catch (const std::exception& error) {
    why = message_of(error);
  }
  if (on_warning_) on_warning_(name + " is given up, and the run goes on: " + why);
}

}  // namespace sluice::engine
