#include "base/files/confined_file_system.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <system_error>

namespace sluice {
namespace fs = std::filesystem;
namespace {

fs::path without_slash(const fs::path& folder) { return folder.has_filename() ? folder : folder.parent_path(); }

// However it was written: "./run", "here/../run" and "run" are one name. Nothing: where that is nobody knows.
fs::path same_name(const fs::path& path) {
  std::error_code error;
  const fs::path whole = fs::absolute(path, error);
  return error ? fs::path() : without_slash(whole.lexically_normal());
}

// What is behind `folder` in `path`; nothing: it does not begin with it, or goes up.
std::optional<fs::path> rest_behind(const fs::path& folder, const fs::path& path) {
  const auto [end, rest] = std::mismatch(folder.begin(), folder.end(), path.begin(), path.end());
  if (end != folder.end()) return std::nullopt;
  fs::path behind;
  for (auto part = rest; part != path.end(); ++part) {
    if (*part == ".." || part->native().find('\0') != std::string::npos) return std::nullopt;
    behind /= *part;
  }
  return behind;
}

// The mode of what has this name, 0 where there is nothing.
mode_t mode_of(const fs::path& path) {
  struct stat status {};
  return ::lstat(path.c_str(), &status) == 0 ? status.st_mode : 0;
}

// Of the folders from `folder` to what holds the last part.
bool meets_link(const fs::path& folder, const fs::path& rest) {
  fs::path place = folder;
  for (const fs::path& part : rest.parent_path()) {
    place /= part;
    if (S_ISLNK(mode_of(place))) return true;
  }
  return false;
}

int refuse(int error) {
  errno = error;
  return -1;
}

bool only_reads(int flags) { return (flags & O_ACCMODE) == O_RDONLY && (flags & (O_CREAT | O_TRUNC)) == 0; }

}  // namespace

ConfinedFileSystem::ConfinedFileSystem(std::vector<fs::path> folders, FileSystem& files)
    : folders_([&] {
        for (fs::path& folder : folders) folder = without_slash(folder);
        return std::move(folders);
      }()),
      files_(files) {}

// By its name alone: what a link leads to is written, if at all, through the rules for that path.
bool ConfinedFileSystem::names_inside(const fs::path& path) const {
  const fs::path name = same_name(path);
  return !name.empty() && std::ranges::any_of(folders_, [&](const fs::path& folder) {
    const fs::path allowed = same_name(folder);
    return !allowed.empty() && rest_behind(allowed, name).has_value();
  });
}

bool ConfinedFileSystem::is_inside(const fs::path& path) const {
  return std::ranges::any_of(folders_, [&](const fs::path& folder) {
    const auto rest = rest_behind(folder, path);
    return rest && !meets_link(folder, *rest);
  });
}

int ConfinedFileSystem::open(const fs::path& path, int flags) {
  if (only_reads(flags) && std::ranges::find(folders_, without_slash(path)) != folders_.end()) return files_.open(path, flags);
  const mode_t there = mode_of(path);
  if (S_ISDIR(there) && only_reads(flags)) return files_.open(path, flags);
  if (!is_inside(path) || S_ISLNK(there)) return refuse(EXDEV);
  if (there != 0 && !S_ISREG(there) && !S_ISDIR(there)) return refuse(ENOTSUP);
  return files_.open(path, flags | O_NOFOLLOW);
}

int ConfinedFileSystem::rename(const fs::path& from, const fs::path& to) {
  return is_inside(from) && is_inside(to) ? files_.rename(from, to) : refuse(EXDEV);
}

int ConfinedFileSystem::exchange(const fs::path& one, const fs::path& other) {
  return is_inside(one) && is_inside(other) ? files_.exchange(one, other) : refuse(EXDEV);
}

int ConfinedFileSystem::make_folder(const fs::path& path) { return is_inside(path) ? files_.make_folder(path) : refuse(EXDEV); }

int ConfinedFileSystem::make_link(const fs::path& target, const fs::path& path) {
  return is_inside(path) && names_inside(path.parent_path() / target) ? files_.make_link(target, path) : refuse(EXDEV);
}

int ConfinedFileSystem::remove_file(const fs::path& path) { return is_inside(path) ? files_.remove_file(path) : refuse(EXDEV); }

int ConfinedFileSystem::remove_folder(const fs::path& path) {
  return is_inside(path) ? files_.remove_folder(path) : refuse(EXDEV);
}

}  // namespace sluice
