#include "base/folder.h"

#include <fcntl.h>

#include <cerrno>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/file_calls.h"

namespace sluice {
namespace fs = std::filesystem;
namespace {

// Listed before the first is removed: what a listing shows of a folder that changes meanwhile is left open.
std::vector<fs::path> entries_of(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::path> entries;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    entries.push_back(entry->path());
  }
  if (error) throw UserError("cannot read " + folder.string() + ": " + error.message());
  return entries;
}

}  // namespace

void make_folders(const fs::path& path, FileSystem& files) {
  const fs::path folder = path.has_filename() ? path : path.parent_path();
  if (folder.empty() || fs::is_directory(folder)) return;
  make_folders(folder.parent_path(), files);
  const int result = uninterrupted([&] { return files.make_folder(folder); });
  if (result != 0 && !(errno == EEXIST && fs::is_directory(folder))) fail_with_errno("make folder", folder);
  sync_folder(folder.parent_path(), files);
}

void sync_folder(const fs::path& folder, FileSystem& files) {
  const fs::path place = folder.empty() ? fs::path(".") : folder;
  const ScopedDescriptor opened(open_or_fail(place, O_RDONLY | O_DIRECTORY, "open", files), files);
  sync_or_fail(opened.value(), place, files);
}

void remove_tree(const fs::path& path, FileSystem& files) {
  std::error_code error;
  const fs::file_status status = fs::symlink_status(path, error);
  if (!fs::exists(status)) {
    if (status.type() == fs::file_type::none) throw UserError("cannot remove " + path.string() + ": " + error.message());
    return;
  }
  const bool is_folder = fs::is_directory(status);
  if (is_folder) {
    for (const fs::path& entry : entries_of(path)) remove_tree(entry, files);
  }
  const int result = uninterrupted([&] { return is_folder ? files.remove_folder(path) : files.remove_file(path); });
  if (result != 0 && errno != ENOENT) fail_with_errno("remove", path);
}

void remove_whole(const fs::path& path, FileSystem& files) {
  const fs::path aside = beside(path, ".removed");
  remove_tree(aside, files);
  if (!fs::exists(fs::symlink_status(path))) return;
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
