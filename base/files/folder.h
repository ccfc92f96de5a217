#pragma once

#include <filesystem>

#include "base/files/file_system.h"

namespace sluice {

// Changes of folders, each through a FileSystem. All throw UserError naming the path (disk full, no right).

/// Makes `path` and the folders above it that are missing. Each new name is durable on return.
void make_folders(const std::filesystem::path& path, FileSystem& files = disk());

/// Likewise, where nothing has that name; else false. Of several processes that make it at once one gets true.
bool make_new_folder(const std::filesystem::path& path, FileSystem& files = disk());

/// Makes the names in one folder durable.
void sync_folder(const std::filesystem::path& folder, FileSystem& files = disk());

/// Removes a file, a link (not what it points to) or a folder with all that is in it. Without effect where there is nothing.
void remove_tree(const std::filesystem::path& path, FileSystem& files = disk());

/// Likewise, in a way that a crash never leaves a part of it under its own name: it gets the name `PATH.removed` first.
/// What a crash left under that name is removed too.
void remove_whole(const std::filesystem::path& path, FileSystem& files = disk());

/// Makes `path` a symbolic link to `target`, in one step if there is one already. Durable on return.
void replace_link(const std::filesystem::path& target, const std::filesystem::path& path, FileSystem& files = disk());

}  // namespace sluice
