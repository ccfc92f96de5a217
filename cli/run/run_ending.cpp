#include "cli/run/run_ending.h"

#include <csignal>
#include <cstdio>
#include <exception>

#include "base/error.h"
#include "base/files/path_kind.h"
#include "base/text/printable.h"
#include "base/text/strings.h"
#include "cli/process/exit_codes.h"
#include "engine/checkpoint/checkpoint_folder.h"

namespace sluice::cli {
namespace fs = std::filesystem;
namespace {

// Whose it may be, where the program is at its wits' end.
std::string whose_bug(const std::vector<std::string>& plugins) {
  std::string whose = "this is a bug in sluice";
  for (const std::string& plugin : plugins) whose += ", or in plugin " + printable(fs::path(plugin).filename().string());
  return whose;
}

// No command goes on with a folder that was removed or renamed.
std::string where_to_go_on(const fs::path& checkpoint, const std::string& how_to_go_on) {
  if (checkpoint.empty()) return "none was saved yet";
  return checkpoint.string() + ", " + (real_path(checkpoint) ? how_to_go_on : "while its folder was there");
}

}  // namespace

std::string what_failed(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& failure) {
    return std::string(first_line(failure.what()));
  }
}

fs::path last_checkpoint(const engine::RunSummary& summary, const fs::path& folder) {
  if (!summary.last_checkpoint.empty()) return summary.last_checkpoint;
  const auto places = engine::list_checkpoints(folder);
  return places.empty() ? fs::path() : places.back().folder;
}

void print_failure(const engine::RunSummary& summary, const std::vector<std::string>& plugins) {
  try {
    std::rethrow_exception(summary.error);
  } catch (const UserError& error) {
    std::fprintf(stderr, "%s", error.what());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "internal error: %s\n      = %s; please report it with the run folder\n",
                 printable(error.what(), Lines::kKept).c_str(), whose_bug(plugins).c_str());
  }
}

void print_where_to_go_on(const fs::path& checkpoint, const std::string& how_to_go_on) {
  const std::string last = where_to_go_on(checkpoint, how_to_go_on);
  std::fprintf(stderr, "      = the run stopped; last checkpoint: %s\n", printable(last).c_str());
}

int exit_code_of(const engine::RunSummary& summary, int signal) {
  switch (summary.end) {
    case engine::RunEnd::kDone:
      return kDone;
    case engine::RunEnd::kInterrupted:
      return exit_code_of_signal(signal == 0 ? SIGINT : signal);  // another rank had it
    case engine::RunEnd::kCutShort:
    case engine::RunEnd::kFailed:
    case engine::RunEnd::kStalled:
      return kFailed;
  }
  return kFailed;
}

}  // namespace sluice::cli
