#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

namespace sluice {

// What lies at a path. All throw UserError naming the path where the system does not tell: "Permission denied", links
// that go in a circle. That is nobody's bug, and it is not the same as a file that is missing. Everything outside of base/ asks
// here, not std::filesystem, whose exceptions no user can read.

enum class PathKind {
  kNothing,
  kFile,  // a regular one
  kFolder,
  kOther,  // a pipe, a device, a socket: nothing that Sluice reads or writes
  kLink,   // a symbolic link: only where links are not followed
};

/// Links are followed; one that leads nowhere is kNothing.
PathKind path_kind(const std::filesystem::path& path);

/// Of the name itself: a link is a link, wherever it leads.
PathKind name_kind(const std::filesystem::path& path);

inline bool is_there(const std::filesystem::path& path) { return path_kind(path) != PathKind::kNothing; }
inline bool is_file(const std::filesystem::path& path) { return path_kind(path) == PathKind::kFile; }
inline bool is_folder(const std::filesystem::path& path) { return path_kind(path) == PathKind::kFolder; }

/// Bytes of a regular file. Throws UserError also where there is none.
int64_t file_bytes(const std::filesystem::path& path);

/// Whether both lead to one file or folder. False where one of them leads to nothing or cannot be reached.
bool is_same_file(const std::filesystem::path& one, const std::filesystem::path& other);

/// Where a path leads after all links. Nothing: it leads to nothing, or cannot be reached.
std::optional<std::filesystem::path> real_path(const std::filesystem::path& path);

/// When the content of a file or folder was changed last.
std::chrono::system_clock::time_point changed_at(const std::filesystem::path& path);

/// What is in a folder, in order of name.
std::vector<std::filesystem::path> entries_of(const std::filesystem::path& folder);

/// From the root; nothing need be there. Throws UserError where the current folder is gone.
std::filesystem::path absolute_path(const std::filesystem::path& path);

}  // namespace sluice
