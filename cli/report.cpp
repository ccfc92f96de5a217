#include <algorithm>
#include <set>
#include <string>

#include "base/error.h"
#include "base/file.h"
#include "base/strings.h"
#include "cli/commands.h"
#include "cli/exit_codes.h"
#include "cli/report_page.h"
#include "cli/report_run.h"
#include "cli/terminal.h"

namespace sluice::cli {

int report_runs(const ReportArguments& arguments) {
  constexpr size_t kMostSamples = 160, kFewestSamples = 20;  // of all runs, of each
  Json runs = Json::array();
  std::vector<std::string> names;
  for (const std::filesystem::path& folder : arguments.run_folders) {
    runs.push_back(report_of_run(folder, std::max(kFewestSamples, kMostSamples / arguments.run_folders.size())));
    names.push_back(runs.back()["name"]);
  }
  const bool alike = std::set<std::string>(names.begin(), names.end()).size() < names.size();
  for (size_t i = 0; alike && i < names.size(); ++i) runs[i]["name"] = arguments.run_folders[i].string();
  const std::string page = report_page(join(names, ", "), {{"runs", std::move(runs)}});
  if (arguments.output.empty())
    print_text(page);
  else
    write_file_atomically(arguments.output, page);
  return kDone;
}

}  // namespace sluice::cli
