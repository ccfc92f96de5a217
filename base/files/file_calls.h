#pragma once

#include <cerrno>
#include <filesystem>
#include <string>

#include "base/files/file_system.h"

namespace sluice {

// What the files of base/ that open, look and write share; not for others.

/// Throws the UserError of errno: "cannot ACTION PATH: No space left on device", with a remedy where there is one.
[[noreturn]] void fail_with_errno(const std::string& action, const std::filesystem::path& path);

/// The result of `call`, which is made again while a signal cuts it short: network and user-space file systems give EINTR
/// anywhere.
template <class Call>
auto uninterrupted(const Call& call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

/// A descriptor of an open file or folder. Throws UserError: "cannot ACTION PATH: ...".
int open_or_fail(const std::filesystem::path& path, int flags, const std::string& action, FileSystem& files);

/// Throws UserError naming both. Within one file system; `to` is replaced where it is a file, a link or an empty folder.
void rename_or_fail(const std::filesystem::path& from, const std::filesystem::path& to, FileSystem& files);

/// Throws UserError. Quiet where the file system has no syncs of this kind (EINVAL).
void sync_or_fail(int descriptor, const std::filesystem::path& path, FileSystem& files);

/// `path` with an ending after its name: a neighbour on the same disk. A slash at the end of `path` does not count.
std::filesystem::path beside(const std::filesystem::path& path, const char* ending);

/// Removes what an operation that failed leaves behind; a failure to do so is not reported, the first one is being.
void clean_up(const std::filesystem::path& path, FileSystem& files) noexcept;

/// Closes a descriptor at the end of its scope; errno stays what it was.
class ScopedDescriptor {
 public:
  explicit ScopedDescriptor(int value, FileSystem& files = disk()) : value_(value), files_(files) {}
  ~ScopedDescriptor() {
    const int code = errno;
    files_.close(value_);
    errno = code;
  }
  ScopedDescriptor(const ScopedDescriptor&) = delete;
  ScopedDescriptor& operator=(const ScopedDescriptor&) = delete;

  int value() const { return value_; }

 private:
  int value_;
  FileSystem& files_;
};

/// Throws UserError for a name that the system would take for a shorter one: it holds a NUL.
void refuse_unusable_name(const std::filesystem::path& path);

/// Of an existing regular file. Throws UserError also for anything else, at once: neither a pipe without a writer nor a device
/// is waited for.
int open_for_reading(const std::filesystem::path& path);

/// Likewise, of a file that is read to its end. Throws UserError also for one that is large and hollow: almost nothing of it is
/// on the disk, as a copy that was broken off leaves it, and reading it would take hours to find zeros.
int open_whole(const std::filesystem::path& path);

}  // namespace sluice
