#include "cli/process/exit_guard.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>

#include "cli/process/exit_codes.h"

namespace sluice::cli {
namespace {

// On the thread that called exit(), while others go on. It has the flag from the guard.
void refuse(int status, void* flag) {
  const std::unique_ptr<std::atomic<bool>> under_way(static_cast<std::atomic<bool>*>(flag));
  if (!under_way->load()) return;
  std::fflush(stdout);
  std::fprintf(stderr,
               "error: some code in this process, of a plugin or a library, called exit(%d) before the command was done\n"
               "      = help: a node that cannot go on throws an exception\n",
               status);
  std::fflush(stderr);
  ::_exit(kFailed);
}

}  // namespace

ExitGuard::ExitGuard() : under_way_(new std::atomic<bool>(true)) { ::on_exit(&refuse, under_way_); }

}  // namespace sluice::cli
