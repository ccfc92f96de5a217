#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/error.h"
#include "base/process/machine.h"
#include "base/text/printable.h"
#include "base/text/strings.h"
#include "cli/checkpoints/commands.h"
#include "cli/command/command_line.h"
#include "cli/init/commands.h"
#include "cli/launch/commands.h"
#include "cli/model/commands.h"
#include "cli/plan/commands.h"
#include "cli/process/exit_codes.h"
#include "cli/process/exit_guard.h"
#include "cli/report/commands.h"
#include "cli/run_folder/resume_point.h"
#include "cli/samples/commands.h"
#include "cli/schema/commands.h"
#include "cli/simulate/commands.h"
#include "cli/sweep/commands.h"
#include "cli/top/commands.h"
#include "cli/track/commands.h"
#include "cli/try/commands.h"
#include "cli/types/commands.h"
#include "engine/contract/version.h"
#include "engine/memory/out_of_memory.h"
#include "models/memory/tensor_pool.h"
#include "nodes/models/passes/threads.h"

namespace sluice::cli {
namespace {

int report(const UserError& error) {
  const Problems shown = in_order(error.problems());  // what is said twice counts once
  const auto errors =
      std::count_if(shown.begin(), shown.end(), [](const Problem& problem) { return problem.severity == Severity::kError; });
  std::fprintf(stderr, "%s", error.what());
  if (errors > 1) std::fprintf(stderr, "\n%s; nothing was run\n", plural(errors, "problem").c_str());
  return kWrongPipeline;
}

// What the system refused, such as another thread.
std::optional<std::string> limit_of_system(const std::exception& error) {
  const auto* refused = dynamic_cast<const std::system_error*>(&error);
  if (refused == nullptr) return std::nullopt;
  const std::error_code code = refused->code();
  const bool is_limit = code == std::errc::resource_unavailable_try_again || code == std::errc::too_many_files_open ||
                        code == std::errc::too_many_files_open_in_system || code == std::errc::not_enough_memory;
  if (!is_limit) return std::nullopt;
  return "the system gives no more threads, memory or open files: " + printable(refused->what());
}

// What a command throws becomes a message and an exit code.
int run_reporting(const Command& command) {
  const ExitGuard guard;
  try {
    return command.run();
  } catch (const engine::OutOfMemory& error) {
    std::fprintf(stderr, "%s", error.what());
    return kFailed;
  } catch (const NoResumePoint& error) {
    std::fprintf(stderr, "%s", error.what());
    return kFailed;
  } catch (const UserError& error) {
    return report(error);
  } catch (const std::exception& error) {
    if (const auto limit = limit_of_system(error)) {
      std::fprintf(stderr, "error: %s\n      = help: it may be a limit of this process: ulimit -a shows them\n", limit->c_str());
      return kFailed;
    }
    if (engine::is_out_of_memory(error)) {
      std::fprintf(stderr, "error: out of memory: %s\n", printable(error.what(), Lines::kKept).c_str());
      return kFailed;
    }
    std::fprintf(stderr, "internal error: %s\n  This is a bug in sluice; please report it with the command and the pipeline.\n",
                 printable(error.what(), Lines::kKept).c_str());
    return kFailed;
  }
}

// A full disk is told, as by other programs. A run goes on whoever reads what it prints, and ignores closed pipes for that.
int printed(int code) {
  struct sigaction of_pipes {};
  ::sigaction(SIGPIPE, nullptr, &of_pipes);
  if (of_pipes.sa_handler != SIG_DFL) return code;
  const bool was_cut_short = std::ferror(stdout) != 0;
  errno = 0;
  if (std::fflush(stdout) == 0 && !was_cut_short) return code;
  const std::string why = errno == 0 ? std::string() : std::string(": ") + std::strerror(errno);
  std::fprintf(stderr, "error: what was printed is not complete, since standard output cannot be written%s\n", why.c_str());
  return code == kDone ? kFailed : code;
}

// A program that was started without them, as some schedulers do, would write its messages into the first files that it opens.
void fill_standard_descriptors() {
  for (int descriptor = STDIN_FILENO; descriptor <= STDERR_FILENO; ++descriptor) {
    if (::fcntl(descriptor, F_GETFD) == -1) ::open("/dev/null", O_RDWR);  // gets the lowest number that is free: this one
  }
}

// What ranks of a host share takes descriptors, of which shells mostly give fewer than a process may have.
void raise_limit_of_open_files() {
  constexpr rlim_t kEnough = 65536;
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= std::min(limit.rlim_max, kEnough)) return;
  limit.rlim_cur = std::min(limit.rlim_max, kEnough);
  ::setrlimit(RLIMIT_NOFILE, &limit);  // where it fails the lower one stays
}

// LibTorch's libraries look for each other while they are loaded, and without a current folder they end the program. So this is
// called before them.
void require_a_current_folder(int, char**, char**) {
  char path[PATH_MAX];
  if (::getcwd(path, sizeof path) != nullptr || errno != ENOENT) return;
  constexpr std::string_view kGone = "error: the current folder is gone\n      = help: cd to one that exists\n";
  if (::write(STDERR_FILENO, kGone.data(), kGone.size()) >= 0) ::_exit(kWrongUsage);
}
__attribute__((section(".preinit_array"), used)) void (*before_libraries)(int, char**, char**) = require_a_current_folder;

// Profilers and sanitizers that are loaded into a process write at its exit what they have seen.
bool is_watched() {
  const auto names = {"LD_PRELOAD", "LD_AUDIT", "CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH"};
  return std::any_of(names.begin(), names.end(), [](const char* name) { return std::getenv(name) != nullptr; });
}

// All is closed and written by now. At exit LibTorch would take its operators out of its tables, one after the other, which is a
// fifth of the time of a short command.
int leave(int code) {
  if (is_watched()) return code;
  std::fflush(nullptr);
  std::_Exit(code);
}

int main(const std::vector<std::string>& words) {
  Command program("rlhf-run", "Sluice: RLHF as a dataflow graph", std::string("sluice ") + kVersionText);
  program.app().footer(
      "rlhf-run pipelines/ppo.toml is short for rlhf-run run pipelines/ppo.toml.\nrlhf-run SUBCOMMAND --help has examples.");
  program.is_short_for("run", Values::pipeline());
  add_run_command(program);
  add_launch_command(program);
  add_init_command(program);
  add_plan_commands(program);
  add_simulate_command(program);
  add_tools_command(program);
  add_sweep_command(program);
  add_resume_command(program);
  add_top_command(program);
  add_report_command(program);
  add_samples_command(program);
  add_track_command(program);
  add_checkpoint_commands(program);
  add_type_commands(program);
  add_schema_command(program);
  add_try_command(program);
  add_model_commands(program);
  add_completion_command(program);
  const CommandLine line = parse_command_line(program, words);
  return printed(line.command == nullptr ? line.exit_code : run_reporting(*line.command));
}

}  // namespace
}  // namespace sluice::cli

int main(int argc, char** argv) {
  sluice::cli::fill_standard_descriptors();
  sluice::cli::raise_limit_of_open_files();
  ::signal(SIGXFSZ, SIG_IGN);  // a file that may not grow is an error of writing it, which is told
  sluice::models::TensorPool::install();
  sluice::nodes::use_threads(sluice::available_cores());  // before anything starts LibTorch's own
  return sluice::cli::leave(sluice::cli::main({argv + 1, argv + argc}));
}
