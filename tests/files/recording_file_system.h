#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/files/file_system.h"

namespace sluice {

/// What is in a folder, by path in it: folders before what is in them. A plain value.
struct FolderContent {
  enum class Kind { kFile, kFolder, kLink };
  struct Entry {
    Kind kind = Kind::kFile;
    std::string bytes;  // a link: its target
  };

  std::map<std::filesystem::path, Entry> entries;
};

FolderContent content_of(const std::filesystem::path& folder);

/// An operation that succeeded, with its data. Paths are in the recorded folder; "." is that folder.
struct FileOperation {
  enum class Kind {
    kOpen,
    kWrite,
    kTruncate,
    kSync,
    kClose,
    kRename,
    kExchange,
    kMakeFolder,
    kMakeLink,
    kRemoveFile,
    kRemoveFolder
  };

  Kind kind;
  std::filesystem::path path;   // of a write, truncate, sync or close: under which it was opened
  std::filesystem::path other;  // new name of a rename, other one of an exchange
  int64_t handle = -1;          // the open() that it belongs to: descriptors are used again, these numbers are not
  int flags = 0;                // of open()
  std::string bytes;            // of a write, as many as were taken; of a link, its target
  int64_t size = 0;             // of truncate()
};

/// "write 12 bytes to model/config.json.tmp"
std::string text_of(const FileOperation& operation);

struct Recording {
  FolderContent before;  // all of it on the disk
  std::vector<FileOperation> operations;
};

/// Another file system, which outlives it, that remembers each operation in one folder that succeeded, in order. What changes
/// that folder in other ways meanwhile is not seen. Thread-safe: operations come one after the other.
class RecordingFileSystem final : public FileSystem {
 public:
  explicit RecordingFileSystem(const std::filesystem::path& folder, FileSystem& files = disk());

  Recording recording() const;

  /// How many operations were recorded so far.
  size_t size() const;

  int open(const std::filesystem::path& path, int flags) override;
  ssize_t write(int descriptor, const void* bytes, size_t size) override;
  int truncate(int descriptor, off_t size) override;
  int sync(int descriptor) override;
  int close(int descriptor) override;
  int rename(const std::filesystem::path& from, const std::filesystem::path& to) override;
  int exchange(const std::filesystem::path& one, const std::filesystem::path& other) override;
  int make_folder(const std::filesystem::path& path) override;
  int make_link(const std::filesystem::path& target, const std::filesystem::path& path) override;
  int remove_file(const std::filesystem::path& path) override;
  int remove_folder(const std::filesystem::path& path) override;

 private:
  struct Opened {
    int64_t handle;
    std::filesystem::path path;
  };

  std::optional<std::filesystem::path> inside(const std::filesystem::path& path) const;
  int named(FileOperation::Kind kind, const std::filesystem::path& path, const auto& operation);
  int renamed(FileOperation::Kind kind, const std::filesystem::path& from, const std::filesystem::path& to,
              const auto& operation);
  void add_to_opened(FileOperation::Kind kind, int descriptor, std::string bytes, int64_t size);

  const std::filesystem::path folder_;
  FileSystem& files_;
  mutable std::mutex mutex_;
  Recording recording_;
  std::map<int, Opened> opened_;  // by descriptor
  int64_t handles_ = 0;
};

}  // namespace sluice
