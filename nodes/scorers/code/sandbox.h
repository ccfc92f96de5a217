#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/process/subprocess.h"

namespace sluice::nodes {

struct SandboxOptions {
  std::string bubblewrap = "bwrap";
  std::string python = "python3";  // a name: looked up in /usr and /bin; a path: it and its libraries are visible beside /usr
  int64_t tmp_bytes = 64 << 20;    // of /tmp, the one place that can be written
};

/// Where code runs that nobody has read: a bubblewrap sandbox.
///
/// It sees /usr read-only, the interpreter, an empty /tmp and the files it is given: no /home, /root, /etc or /var. It has
/// process, network, ipc, host name and user namespaces of its own: no other process, no network, not even this machine's; no
/// capabilities, and a filter of system calls (seccomp_filter.h). What is started in it dies with the Subprocess object, and with
/// this process. Where this process is root, it runs as user 65534: root is not held to a number of processes. Memory, time,
/// processes and file sizes are limited by what runs first in it (code_runner.py).
class Sandbox {
 public:
  struct File {
    std::string path;  // in the sandbox
    std::string content;
  };

  /// Runs the interpreter in it once. Throws UserError where that does not work: there is no weaker sandbox to fall back to.
  explicit Sandbox(SandboxOptions options);

  /// Starts the interpreter with `arguments`.
  std::unique_ptr<Subprocess> start(const std::vector<std::string>& arguments, const std::vector<File>& files,
                                    size_t most_output) const;

 private:
  void try_it() const;

  SandboxOptions options_;
  std::string filter_;
  std::vector<std::string> folders_;  // of the interpreter, outside of /usr
};

}  // namespace sluice::nodes
