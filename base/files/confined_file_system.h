#pragma once

#include <filesystem>
#include <vector>

#include "base/files/file_system.h"

namespace sluice {

/// Another file system, which outlives it, that changes nothing outside of some folders: what a run writes through. A path must
/// begin with one of the folders as it was given, go on without "..", and meet no symbolic link behind that folder; only ordinary
/// files are opened. What breaks the rule fails with EXDEV, or ENOTSUP for a pipe, a device or a socket, and has no effect. The
/// folders themselves may be reached through links and need not be there yet. Folders that are opened to be read pass.
///
/// It guards against what a stranger's pipeline or run folder holds, not against a process that changes links meanwhile.
/// Thread-safe.
class ConfinedFileSystem final : public FileSystem {
 public:
  explicit ConfinedFileSystem(std::vector<std::filesystem::path> folders, FileSystem& files = disk());

  int open(const std::filesystem::path& path, int flags) override;
  ssize_t write(int descriptor, const void* bytes, size_t size) override { return files_.write(descriptor, bytes, size); }
  int truncate(int descriptor, off_t size) override { return files_.truncate(descriptor, size); }
  int sync(int descriptor) override { return files_.sync(descriptor); }
  int close(int descriptor) override { return files_.close(descriptor); }
  int rename(const std::filesystem::path& from, const std::filesystem::path& to) override;
  int exchange(const std::filesystem::path& one, const std::filesystem::path& other) override;
  int make_folder(const std::filesystem::path& path) override;
  int make_link(const std::filesystem::path& target, const std::filesystem::path& path) override;
  int remove_file(const std::filesystem::path& path) override;
  int remove_folder(const std::filesystem::path& path) override;

 private:
  bool is_inside(const std::filesystem::path& path) const;
  bool names_inside(const std::filesystem::path& path) const;

  const std::vector<std::filesystem::path> folders_;
  FileSystem& files_;
};

}  // namespace sluice
