#include "base/files/folder.h"

#include <fcntl.h>

#include <cerrno>

#include "base/error.h"
#include "base/files/file.h"
#include "base/files/file_calls.h"
#include "base/files/path_kind.h"

namespace sluice {
namespace fs = std::filesystem;
namespace {

[[noreturn]] void fail_because_taken(const fs::path& folder) {
  const bool is_link = name_kind(folder) == PathKind::kLink;
  throw UserError("cannot make folder " + folder.string() + ": " +
                  (is_link ? "a symbolic link of that name leads to nothing" : "a file has that name"));
}

}  // namespace

void make_folders(const fs::path& path, FileSystem& files) {
  const fs::path folder = path.has_filename() ? path : path.parent_path();
  if (folder.empty() || is_folder(folder)) return;
  make_folders(folder.parent_path(), files);
  const int result = uninterrupted([&] { return files.make_folder(folder); });
  if (result != 0 && errno != EEXIST) fail_with_errno("make folder", folder);
  if (result != 0 && !is_folder(folder)) fail_because_taken(folder);
  sync_folder(folder.parent_path(), files);
}

bool make_new_folder(const fs::path& path, FileSystem& files) {
  make_folders(path.parent_path(), files);
  if (uninterrupted([&] { return files.make_folder(path); }) != 0) {
    if (errno == EEXIST) return false;
    fail_with_errno("make folder", path);
  }
  sync_folder(path.parent_path(), files);
  return true;
}

void sync_folder(const fs::path& folder, FileSystem& files) {
  const fs::path place = folder.empty() ? fs::path(".") : folder;
  const ScopedDescriptor opened(open_or_fail(place, O_RDONLY | O_DIRECTORY, "open", files), files);
  sync_or_fail(opened.value(), place, files);
}

void remove_tree(const fs::path& path, FileSystem& files) {
  const PathKind kind = name_kind(path);
  if (kind == PathKind::kNothing) return;
  const bool folder = kind == PathKind::kFolder;
  if (folder) {
    // Listed before the first is removed: what a listing shows of a folder that changes meanwhile is left open.
    for (const fs::path& entry : entries_of(path)) remove_tree(entry, files);
  }
  const int result = uninterrupted([&] { return folder ? files.remove_folder(path) : files.remove_file(path); });
  if (result != 0 && errno != ENOENT) fail_with_errno("remove", path);
}

void remove_whole(const fs::path& path, FileSystem& files) {
  const fs::path aside = beside(path, ".removed");
  remove_tree(aside, files);
  if (name_kind(path) == PathKind::kNothing) return;
  rename_or_fail(path, aside, files);
  // Waits for the disk: what is removed in a folder may reach it before the folder's new name does.
  sync_folder(path.parent_path(), files);
  remove_tree(aside, files);
}

void replace_link(const fs::path& target, const fs::path& path, FileSystem& files) {
  const fs::path temporary = beside(path, ".tmp");
  remove_tree(temporary, files);
  try {
    if (uninterrupted([&] { return files.make_link(target, temporary); }) != 0) fail_with_errno("make link", path);
    replace_path(temporary, path, files);
  } catch (...) {
    clean_up(temporary, files);
    throw;
  }
}

}  // namespace sluice
