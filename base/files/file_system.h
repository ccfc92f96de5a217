#pragma once

#include <sys/types.h>

#include <cstddef>
#include <filesystem>

namespace sluice {

/// The operations with which Sluice changes files and folders: the system's own calls, with their results (-1 and errno when one
/// fails). Everything that is written durably goes through one of these, so that tests can let any of them fail, and replay what
/// a power cut would leave. Thread-safe. What only reads does not go through it.
class FileSystem {
 public:
  virtual ~FileSystem() = default;

  virtual int open(const std::filesystem::path& path, int flags) = 0;  // a new file may be read by all and written by its owner
  virtual ssize_t write(int descriptor, const void* bytes, size_t size) = 0;
  virtual int truncate(int descriptor, off_t size) = 0;
  virtual int sync(int descriptor) = 0;  // fsync: of a file its bytes, of a folder its names
  virtual int close(int descriptor) = 0;
  virtual int rename(const std::filesystem::path& from, const std::filesystem::path& to) = 0;
  virtual int exchange(const std::filesystem::path& one, const std::filesystem::path& other) = 0;  // EINVAL, ENOSYS: it cannot
  virtual int make_folder(const std::filesystem::path& path) = 0;
  virtual int make_link(const std::filesystem::path& target, const std::filesystem::path& path) = 0;  // symbolic
  virtual int remove_file(const std::filesystem::path& path) = 0;                                     // or a link
  virtual int remove_folder(const std::filesystem::path& path) = 0;                                   // an empty one
};

/// The system's.
FileSystem& disk();

}  // namespace sluice
