#include "cli/report/commands.h"

#include <memory>
#include <string>
#include <vector>

namespace sluice::cli {
namespace {

Values optional_port() {
  Values values = Values::whole_number(0, 65535);
  values.shown = "[PORT]";
  return values;
}

}  // namespace

void add_report_command(Command& program) {
  Command& report = program.add("report", "write one HTML file about one or several runs, or serve a page that follows them",
                                {"rlhf-run report runs/ppo-20260131-180000 -o ppo.html",
                                 "rlhf-run report runs/ppo runs/grpo -o both.html", "rlhf-run report runs/ppo --serve"});
  struct Taken {
    std::vector<std::string> folders;
    ReportArguments report;
    std::string port;
  };
  const auto taken = std::make_shared<Taken>();
  report.argument("run", taken->folders, Values::folder(), "the run folders, which are compared").required();
  CLI::Option& output =
      report.option("-o,--output", taken->report.output, Values::file(),
                    "the file that it is written to (default: RUN.html on a terminal, else standard output; -: that)");
  CLI::Option& serve = report.option("--serve", taken->port, optional_port(),
                                     "serve the page at this port of 127.0.0.1 instead; without one, at one that is free");
  serve.expected(0, 1)->excludes(&output);
  report.runs([taken, &serve] {
    taken->report.run_folders.assign(taken->folders.begin(), taken->folders.end());
    if (serve.count() == 0) return report_runs(taken->report);
    taken->report.port = static_cast<std::uint16_t>(std::stoi("0" + taken->port));
    return serve_report(taken->report);
  });
}

}  // namespace sluice::cli
