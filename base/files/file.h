#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/files/file_system.h"
#include "base/files/mapped_file.h"

namespace sluice {

// Changes of files go through a FileSystem. All throw UserError naming the path (disk full, no right); what a signal interrupts
// is done again.

/// More than any text that Sluice reads as a whole has: settings, tokenizers, templates, manifests.
inline constexpr int64_t kMostTextBytes = 64 << 20;

/// The whole of a regular file. Throws UserError naming the path when it is missing, unreadable, something else (a folder, a
/// pipe, a device), or has more than `most_bytes`, of which nothing is read then.
std::string read_file(const std::filesystem::path& path, int64_t most_bytes = kMostTextBytes);

/// Its last `bytes` bytes, or all of it where it has fewer. Throws likewise.
std::string read_end_of_file(const std::filesystem::path& path, int64_t bytes);

/// Replaces `path` as a whole: temporary name beside it (`PATH.tmp`), fsync, rename, fsync of the folder.
/// A crash at any point, or a failure, leaves the old or the new content.
void write_file_atomically(const std::filesystem::path& path, std::string_view content, FileSystem& files = disk());

/// Likewise, but without waiting for the disk: a reader sees the old or the new content, a power cut may lose both.
void replace_file(const std::filesystem::path& path, std::string_view content, FileSystem& files = disk());

/// Puts a finished folder or file, whose files are on the disk, in the place of `target`. Durable on return. A folder is swapped
/// for another in one step, then the old one gets the name `TARGET.old` and is removed; what a crash left under that name is
/// removed by the next call. Only where the file system cannot swap is there a moment in which a crash leaves nothing at
/// `target`, and the old folder at `TARGET.old`. When it throws, `target` is the old or the new one.
void replace_path(const std::filesystem::path& finished, const std::filesystem::path& target, FileSystem& files = disk());

/// Cuts a file to its first `bytes` bytes. Durable on return. Throws UserError also where it has fewer.
void cut_file(const std::filesystem::path& path, int64_t bytes, FileSystem& files = disk());

/// Makes what a file has by now durable, and its name: whoever wrote it.
void sync_file(const std::filesystem::path& path, FileSystem& files = disk());

/// An output file that reports every failed write as a UserError naming the path. Not thread-safe. The destructor closes
/// silently; call close() to learn of late errors. `files` outlives it.
class OutputFile {
 public:
  enum class Mode { kTruncate, kAppend };

  explicit OutputFile(const std::filesystem::path& path, Mode mode = Mode::kTruncate, FileSystem& files = disk());
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void write(std::string_view bytes);
  void sync();   // its bytes to the disk; the name of a new file needs sync_folder()
  void close();  // sync and close; later writes are a bug

  /// Bytes of the file: written ones, and those that were there before.
  int64_t size() const { return size_; }

 private:
  FileSystem& files_;
  std::filesystem::path path_;
  int descriptor_ = -1;
  int64_t size_ = 0;
};

}  // namespace sluice
