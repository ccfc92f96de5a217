#include "base/files/path_kind.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "base/error.h"
#include "base/files/file_calls.h"

namespace sluice {
namespace fs = std::filesystem;
namespace {

// Nothing: there is none. ENOTDIR: a file stands where a folder would have to be.
template <class Call>
bool looked_at(const fs::path& path, const Call& call) {
  refuse_unusable_name(path);
  if (uninterrupted(call) == 0) return true;
  if (errno == ENOENT || errno == ENOTDIR) return false;
  fail_with_errno("look at", path);
}

PathKind kind_of(mode_t mode) {
  if (S_ISREG(mode)) return PathKind::kFile;
  if (S_ISDIR(mode)) return PathKind::kFolder;
  return S_ISLNK(mode) ? PathKind::kLink : PathKind::kOther;
}

}  // namespace

PathKind path_kind(const fs::path& path) {
  struct stat status {};
  return looked_at(path, [&] { return ::stat(path.c_str(), &status); }) ? kind_of(status.st_mode) : PathKind::kNothing;
}

PathKind name_kind(const fs::path& path) {
  struct stat status {};
  return looked_at(path, [&] { return ::lstat(path.c_str(), &status); }) ? kind_of(status.st_mode) : PathKind::kNothing;
}

int64_t file_bytes(const fs::path& path) {
  struct stat status {};
  if (looked_at(path, [&] { return ::stat(path.c_str(), &status); }) && S_ISREG(status.st_mode)) return status.st_size;
  throw UserError("there is no file " + path.string());
}

bool is_same_file(const fs::path& one, const fs::path& other) {
  std::error_code error;
  return fs::equivalent(one, other, error) && !error;
}

std::optional<fs::path> real_path(const fs::path& path) {
  std::error_code error;
  fs::path real = fs::canonical(path, error);
  return error ? std::nullopt : std::optional(std::move(real));
}

std::chrono::system_clock::time_point changed_at(const fs::path& path) {
  struct stat status {};
  if (!looked_at(path, [&] { return ::stat(path.c_str(), &status); })) throw UserError("there is no file " + path.string());
  const auto since = std::chrono::seconds(status.st_mtim.tv_sec) + std::chrono::nanoseconds(status.st_mtim.tv_nsec);
  return std::chrono::system_clock::time_point(std::chrono::duration_cast<std::chrono::system_clock::duration>(since));
}

std::vector<fs::path> entries_of(const fs::path& folder) {
  refuse_unusable_name(folder);
  std::error_code error;
  std::vector<fs::path> entries;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    entries.push_back(entry->path());
  }
  if (error) {
    errno = error.value();
    fail_with_errno("list", folder);
  }
  std::ranges::sort(entries);
  return entries;
}

fs::path absolute_path(const fs::path& path) {
  std::error_code error;
  fs::path absolute = fs::absolute(path, error);
  if (!error) return absolute;
  errno = error.value();
  fail_with_errno("find from the current folder", path);
}

}  // namespace sluice
