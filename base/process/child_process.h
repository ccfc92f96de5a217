#pragma once

#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <future>
#include <memory>
#include <thread>

#include "base/process/subprocess.h"

namespace sluice {

/// The thread that is the parent of a process. The system kills a process when the thread that started it ends, not only when all
/// of its program does, so it gets one of its own, which lasts until this object is destroyed. It takes no signals.
class ParentThread {
 public:
  /// Returns when `start`, which must not throw, was called on the thread. Throws std::system_error when there is no thread.
  explicit ParentThread(const std::function<void()>& start);
  ~ParentThread();
  ParentThread(const ParentThread&) = delete;
  ParentThread& operator=(const ParentThread&) = delete;

 private:
  std::promise<void> over_;
  std::thread thread_;
};

/// A process that was started, and our ends of the pipes that it has, which never block and are closed by the next exec. Or why
/// it was not: an errno, and nothing is left behind.
struct Launched {
  int error = 0;
  pid_t pid = -1;
  int input = -1;
  int output = -1;
  int errors = -1;
  std::unique_ptr<ParentThread> parent;  // with which the process dies
};

/// Starts `program` as Subprocess says. Costs the same however much memory this process has.
Launched launch(const std::filesystem::path& program, const SubprocessOptions& options);

}  // namespace sluice
