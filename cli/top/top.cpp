#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <functional>
#include <limits>
#include <thread>

#include "base/error.h"
#include "base/files/file.h"
#include "base/files/path_kind.h"
#include "base/json/json.h"
#include "cli/process/exit_codes.h"
#include "cli/process/stop_signals.h"
#include "cli/run_folder/file_of_run.h"
#include "cli/terminal/ink.h"
#include "cli/terminal/terminal.h"
#include "cli/top/commands.h"
#include "cli/top/top_text.h"
#include "engine/contract/run_folder.h"

namespace sluice::cli {
namespace fs = std::filesystem;
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kFrame{500};
constexpr size_t kWidthWithoutTerminal = 160;

void check_is_run(const fs::path& folder) {
  if (!is_folder(folder)) {
    throw UserError(folder.string() + " is not a folder", "name the folder of a run, such as runs/ppo-20260131-180000");
  }
  if (is_there(folder / engine::kStatusFile)) return;
  if (is_there(folder / engine::kMetricsFile)) {
    throw UserError("the run in " + folder.string() + " has not written its status yet: there is no status.json",
                    "try again in a second, unless an older version made this run");
  }
  throw UserError(folder.string() + " is not the folder of a run: it has neither status.json nor metrics.jsonl",
                  "name the folder of a run, such as runs/ppo-20260131-180000");
}

// What belongs to the run, and is not linked to from its folder: somebody else may have laid that out.
fs::path own_file(const fs::path& folder, const char* name) {
  if (auto file = file_of_run(folder, name)) return std::move(*file);
  throw UserError(is_there(folder / name) ? (folder / name).string() + " is no file, or a link to one outside of the run folder"
                                          : (folder / name).string() + " is gone",
                  "name the folder of a run, such as runs/ppo-20260131-180000");
}

// The last line that is complete: the run may be writing another one.
std::string last_line(const fs::path& path) {
  constexpr int64_t kLongestLine = 1 << 16;
  std::string tail = read_end_of_file(path, kLongestLine);
  const bool whole = static_cast<int64_t>(tail.size()) < kLongestLine;
  tail.resize(tail.rfind('\n') == std::string::npos ? 0 : tail.rfind('\n'));
  const size_t before = tail.rfind('\n');
  if (before != std::string::npos) return tail.substr(before + 1);
  return whole ? tail : std::string();
}

engine::MetricRow read_metrics(const fs::path& folder) {
  if (!is_there(folder / engine::kMetricsFile)) return {};
  const fs::path path = own_file(folder, engine::kMetricsFile);
  const std::string text = last_line(path);
  if (text.empty()) return {};
  const Json line = parse_json(text, path.string());
  if (!line.is_object()) throw UserError("the last line of " + path.string() + " is not a JSON object");
  engine::MetricRow metrics;
  for (const auto& [name, value] : line.items()) {
    if (value.is_number()) metrics.emplace_back(name, value.get<double>());
    if (value.is_null()) metrics.emplace_back(name, std::numeric_limits<double>::quiet_NaN());  // it was not finite
  }
  return metrics;
}

bool process_exists(int64_t pid) {
  const bool possible = pid > 0 && pid <= std::numeric_limits<pid_t>::max();
  return possible && (::kill(static_cast<pid_t>(pid), 0) == 0 || errno == EPERM);
}

// A process that is not here may be on another machine, or outside this container: then the status goes on changing.
// Waits for: another status. Ends when: it is there, or a run that lives would have written two, or `stop` says so.
bool is_rewritten(const fs::path& path, const std::function<bool()>& stop) {
  constexpr milliseconds kLongest{1500}, kPoll{50};
  const auto before = changed_at(path);
  for (milliseconds waited{0}; waited < kLongest && !stop(); waited += kPoll) {
    std::this_thread::sleep_for(kPoll);
    if (changed_at(path) != before) return true;
  }
  return false;
}

TopView look_at(const fs::path& folder, const std::function<bool()>& stop) {
  const fs::path file = folder / engine::kStatusFile;
  const auto read = [&] { return engine::parse_status(read_file(own_file(folder, engine::kStatusFile)), file.string()); };
  TopView view;
  view.status = read();
  const bool running = view.status.state == "running";
  if (running && !process_exists(view.status.pid)) {
    view.gone = !is_rewritten(file, stop) && !stop();
    view.status = read();  // its last words may have come meanwhile
  }
  view.silent_seconds = std::chrono::duration<double>(std::chrono::system_clock::now() - changed_at(file)).count();
  view.metrics = read_metrics(folder);
  return view;
}

bool goes_on(const TopView& view) { return view.status.state == "running" && !view.gone; }

// Until the run ends, `q` or Ctrl-C.
int watch(const fs::path& folder, TopView& view) {
  const StopSignals signals;
  const auto interrupted = [&] { return signals.seen() != 0; };
  FullScreen screen;
  while (goes_on(view) && !interrupted()) {
    screen.show(top_text(view, terminal_size().columns));
    const char key = screen.wait_for_key(kFrame);
    if (key == 'q' || key == 'Q') return kDone;
    if (!interrupted()) view = look_at(folder, interrupted);
  }
  return interrupted() ? exit_code_of_signal(signals.seen()) : kDone;
}

}  // namespace

int show_top(const fs::path& folder, bool once) {
  check_is_run(folder);
  const bool terminal = ::isatty(STDOUT_FILENO) == 1;
  TopView view = look_at(folder, [] { return false; });
  if (abilities_of(stdout).cursor && !once && goes_on(view)) {
    const int code = watch(folder, view);
    if (goes_on(view)) return code;  // the person has seen enough
  }
  std::fputs(top_text(view, terminal ? terminal_size().columns : kWidthWithoutTerminal).c_str(), stdout);
  return kDone;
}

}  // namespace sluice::cli
