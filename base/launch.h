#pragma once

#include <sys/types.h>

#include <filesystem>

#include "base/subprocess.h"

namespace sluice {

/// A process that was started, and our ends of its pipes, which never block and are closed by the next exec. Or why it was not:
/// an errno, and nothing is left behind.
struct Launched {
  int error = 0;
  pid_t pid = -1;
  int input = -1;
  int output = -1;
  int errors = -1;
};

/// Starts `program` as Subprocess says. Costs the same however much memory this process has.
Launched launch(const std::filesystem::path& program, const SubprocessOptions& options);

}  // namespace sluice
