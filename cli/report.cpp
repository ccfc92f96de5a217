#include <chrono>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "cli/commands.h"
#include "cli/exit_codes.h"
#include "cli/live_report.h"
#include "cli/report_page.h"
#include "cli/report_server.h"
#include "cli/stop_signals.h"
#include "cli/terminal.h"

namespace sluice::cli {

int report_runs(const ReportArguments& arguments) {
  const std::vector<ReportedRun> reported = reported_runs(arguments.run_folders);
  std::vector<RunReport> runs = readers_of(reported, Watch::kOnce);
  const ReportState state = report_state(reported, runs);
  const std::string page = report_page(PageIs::kFile, state.title, state.report);
  if (arguments.output.empty())
    print_text(page);
  else
    write_file_atomically(arguments.output, page);
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
