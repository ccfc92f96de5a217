#include "base/files/file_calls.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

#include "base/error.h"
#include "base/files/folder.h"
#include "base/text/strings.h"

namespace sluice {
namespace fs = std::filesystem;

namespace {

constexpr off_t kLeastHollow = 256 << 20;  // bytes; what is smaller is read soon
constexpr int kMostStretches = 4096;       // of data that are looked at: more are not the work of a broken copy

std::string reason_of(int code) {
  if (code == ELOOP) return "its symbolic links go in a circle";
  if (code == EXDEV) return "it leads out of the folder that may be written";  // ConfinedFileSystem
  if (code == ENOTSUP) return "it is not an ordinary file";                    // likewise
  return std::strerror(code);
}

std::string help_for(int code, const fs::path& path) {
  struct stat status;
  const fs::path folder = path.parent_path();
  if (code == ENOENT && !folder.empty() && ::stat(folder.c_str(), &status) != 0) return "there is no folder " + folder.string();
  if (code == ENOSPC || code == EDQUOT) return "free space on that disk; files that were complete before are untouched";
  if (code == EMFILE) return "ulimit -n NUMBER allows a process to have more files open";
  if (code == EACCES || code == EPERM || code == EROFS) return "choose another place, or change its rights";
  if (code == EXDEV) return "remove the symbolic link, or name a place inside";
  return {};
}

// What `mode` is, where it is not a regular file.
const char* name_of_kind(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a named pipe";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

void require_regular_file(const struct stat& status, const fs::path& path) {
  if (S_ISREG(status.st_mode)) return;
  throw UserError("cannot read " + path.string() + ": it is " + name_of_kind(status.st_mode) + ", not a file");
}

// Of the file's bytes those that are on the disk, counted until they are an eighth of it. Where the file system does not tell
// holes from data, all are.
bool is_hollow(int descriptor, off_t size) {
  if (size < kLeastHollow) return false;
  off_t there = 0, data = 0, hole = 0;
  for (int stretch = 0; stretch < kMostStretches; ++stretch) {
    data = ::lseek(descriptor, hole, SEEK_DATA);
    if (data < 0) return errno == ENXIO && there < size / 8;  // no more data
    hole = ::lseek(descriptor, data, SEEK_HOLE);
    if (hole < 0) return false;
    there += hole - data;
    if (there >= size / 8) return false;
  }
  return false;
}

}  // namespace

void fail_with_errno(const std::string& action, const fs::path& path) {
  const int code = errno;
  throw UserError("cannot " + action + " " + path.string() + ": " + reason_of(code), help_for(code, path));
}

void refuse_unusable_name(const fs::path& path) {
  if (path.native().find('\0') == std::string::npos) return;
  throw UserError("cannot use the path " + sluice::quoted(path.string()) + ": it holds a NUL character");
}

int open_or_fail(const fs::path& path, int flags, const std::string& action, FileSystem& files) {
  const int descriptor = uninterrupted([&] { return files.open(path, flags | O_CLOEXEC); });
  if (descriptor < 0) fail_with_errno(action, path);
  return descriptor;
}

void rename_or_fail(const fs::path& from, const fs::path& to, FileSystem& files) {
  if (uninterrupted([&] { return files.rename(from, to); }) != 0) fail_with_errno("rename " + from.string() + " to", to);
}

void sync_or_fail(int descriptor, const fs::path& path, FileSystem& files) {
  if (uninterrupted([&] { return files.sync(descriptor); }) != 0 && errno != EINVAL) fail_with_errno("write", path);
}

fs::path beside(const fs::path& path, const char* ending) {
  fs::path neighbour = path.has_filename() ? path : path.parent_path();
  neighbour += ending;
  return neighbour;
}

void clean_up(const fs::path& path, FileSystem& files) noexcept {
  try {
    remove_tree(path, files);
  } catch (...) {  // who calls is about to report the failure that matters
  }
}

int open_for_reading(const fs::path& path) {
  refuse_unusable_name(path);
  struct stat status {};
  // Looked at first: to open a device can have effects.
  if (uninterrupted([&] { return ::stat(path.c_str(), &status); }) != 0) fail_with_errno("read", path);
  require_regular_file(status, path);
  const int descriptor = uninterrupted([&] { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY); });
  if (descriptor < 0) fail_with_errno("read", path);
  try {
    if (::fstat(descriptor, &status) != 0) fail_with_errno("read", path);
    require_regular_file(status, path);  // another one may have its name by now
  } catch (...) {
    ::close(descriptor);
    throw;
  }
  return descriptor;
}

int open_whole(const fs::path& path) {
  const int descriptor = open_for_reading(path);
  struct stat status {};
  if (::fstat(descriptor, &status) != 0 || !is_hollow(descriptor, status.st_size)) return descriptor;
  ::close(descriptor);
  throw UserError("cannot read " + path.string() + ": almost nothing of its " + human_bytes(status.st_size) + " is on the disk",
                  "copy or download it again: the last time was broken off");
}

}  // namespace sluice
