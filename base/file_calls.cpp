#include "base/file_calls.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

#include "base/error.h"
#include "base/folder.h"
#include "base/strings.h"

namespace sluice {
namespace fs = std::filesystem;

namespace {

std::string reason_of(int code) {
  if (code == ELOOP) return "its symbolic links go in a circle";
  if (code == EXDEV) return "it leads out of the folder that may be written";  // ConfinedFileSystem
  if (code == ENOTSUP) return "it is not an ordinary file";                    // likewise
  return std::strerror(code);
}

std::string help_for(int code) {
  if (code == ENOSPC || code == EDQUOT) return "free space on that disk; files that were complete before are untouched";
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

}  // namespace

void fail_with_errno(const std::string& action, const fs::path& path) {
  const int code = errno;
  throw UserError("cannot " + action + " " + path.string() + ": " + reason_of(code), help_for(code));
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

}  // namespace sluice
