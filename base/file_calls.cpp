#include "base/file_calls.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

#include "base/error.h"
#include "base/folder.h"

namespace sluice {
namespace fs = std::filesystem;

void fail_with_errno(const std::string& action, const fs::path& path) {
  const int code = errno;
  std::string help;
  if (code == ENOSPC || code == EDQUOT) help = "free space on that disk; files that were complete before are untouched";
  if (code == EACCES || code == EROFS) help = "choose a place you may write to, or change its rights";
  throw UserError("cannot " + action + " " + path.string() + ": " + std::strerror(code), help);
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
  const int descriptor = uninterrupted([&] { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC); });
  if (descriptor < 0) fail_with_errno("read", path);
  struct stat status {};
  if (::fstat(descriptor, &status) == 0 && S_ISDIR(status.st_mode)) {
    ::close(descriptor);
    errno = EISDIR;
    fail_with_errno("read", path);
  }
  return descriptor;
}

}  // namespace sluice
