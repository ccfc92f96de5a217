#pragma once

#include <cstdint>
#include <filesystem>

namespace sluice::cli {

/// Keeps other processes from a run folder while it lives: an flock on RUN/lock, which goes with the process however that ends.
/// The file holds who has it ({"pid", "host", "since"}), for messages; a file that a process left behind without the lock means
/// nothing and is taken over. Whether processes on other machines see the lock is up to the file system. Where it cannot lock at
/// all a warning is printed, and nothing keeps them apart.
class RunLock {
 public:
  /// `run_folder` exists. Throws UserError naming the process that has it.
  explicit RunLock(const std::filesystem::path& run_folder);
  ~RunLock() { release(); }
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;

  /// Removes the file. Nothing the second time.
  void release();

 private:
  bool open_and_lock();  // false: the file lost its name meanwhile
  bool is_current() const;

  const std::filesystem::path path_;
  int descriptor_ = -1;
};

/// Whether that process of this machine has the lock of the folder, as far as its file says. Of a folder that is not there it has
/// not.
bool is_locked_by(int64_t pid, const std::filesystem::path& run_folder);

}  // namespace sluice::cli
