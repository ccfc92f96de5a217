#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/files/file.h"
#include "base/files/mapped_file.h"
#include "base/files/path_kind.h"
#include "base/text/printable.h"
#include "cli/process/exit_codes.h"
#include "cli/process/stop_signals.h"
#include "cli/report/commands.h"
#include "cli/report/live_report.h"
#include "cli/report/report_page.h"
#include "cli/report/report_server.h"
#include "cli/terminal/output_file.h"
#include "cli/terminal/terminal.h"

namespace sluice::cli {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kBeginsAReport = "<!doctype html>";  // as report/page.html

// A name that is one letter wrong may be that of a file which nobody can make again.
void require_no_other_file(const fs::path& output) {
  if (is_folder(output)) throw UserError(output.string() + " is a folder", "-o FILE.html names the page that is written");
  if (path_kind(output) != PathKind::kFile) return;
  const MappedFile there(output);
  const std::string_view text(reinterpret_cast<const char*>(there.bytes().data()), there.bytes().size());
  if (text.starts_with(kBeginsAReport)) return;
  throw UserError(output.string() + " exists, and is no report", "-o with another name, or remove that file before");
}

// A page is nothing to read on a terminal: there it is a file of the current folder, called after the first run.
fs::path output_of(const ReportArguments& arguments) {
  if (!arguments.output.empty() || ::isatty(STDOUT_FILENO) != 1) return arguments.output;
  const fs::path run = (absolute_path(arguments.run_folders.front()) / "").lexically_normal();
  return run.parent_path().filename().string() + ".html";
}

}  // namespace

int report_runs(const ReportArguments& arguments) {
  const fs::path output = output_of(arguments);
  if (!output.empty() && output != kStandardOutput) require_no_other_file(output);
  const std::vector<ReportedRun> reported = reported_runs(arguments.run_folders);
  std::vector<RunReport> runs = readers_of(reported, Watch::kOnce);
  const ReportState state = report_state(reported, runs);
  const std::string page = report_page(PageIs::kFile, state.title, state.report);
  write_output(output, page);
  if (output != arguments.output)
    print_text(printable(output.string()) + " is the page, for a browser; -o names another file, and --serve follows the run\n");
  return kDone;
}

int serve_report(const ReportArguments& arguments) {
  constexpr std::chrono::milliseconds kLook{50};
  const StopSignals signals;
  LiveReport report(reported_runs(arguments.run_folders));
  const ReportServer server(report, arguments.port);
  std::printf("%s\n", server.address().c_str());
  std::fflush(stdout);
  std::fputs("the page follows the run while it is open; Ctrl-C ends this\n", stderr);
  while (signals.seen() == 0) {
    if (!server.is_listening()) throw UserError("the system has ended the connection of " + server.address());
    std::this_thread::sleep_for(kLook);
  }
  return exit_code_of_signal(signals.seen());
}

}  // namespace sluice::cli
