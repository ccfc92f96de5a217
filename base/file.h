#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace sluice {

/// The whole file. Throws UserError naming the path when it is missing, a folder or unreadable.
std::string read_file(const std::filesystem::path& path);

/// Replaces `path` as a whole: temporary name beside it, fsync, rename, fsync of the folder.
/// A crash at any point leaves the old or the new content. Throws UserError (disk full, no right).
void write_file_atomically(const std::filesystem::path& path, std::string_view content);

/// Likewise, but without waiting for the disk: a reader sees the old or the new content, a power cut may lose both.
void replace_file(const std::filesystem::path& path, std::string_view content);

/// An output file that reports every failed write as a UserError naming the path. Not thread-safe. The destructor closes silently;
/// call close() to learn of late errors.
class OutputFile {
 public:
  enum class Mode { kTruncate, kAppend };

  explicit OutputFile(const std::filesystem::path& path, Mode mode = Mode::kTruncate);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void write(std::string_view bytes);
  void sync();   // to the disk
  void close();  // sync and close; later writes are a bug

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
};

/// Renames a finished folder or file over `target` (an old folder is moved aside first and removed after). Durable on return.
void replace_path(const std::filesystem::path& finished, const std::filesystem::path& target);

/// A read-only memory map of a whole file. Throws UserError when the file cannot be opened. Moves, does not copy.
class MappedFile {
 public:
  explicit MappedFile(const std::filesystem::path& path);

  /// Of an open descriptor, which stays the caller's and may be closed after. `name` is for messages.
  MappedFile(int descriptor, const std::filesystem::path& name);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&&) = delete;

  std::span<const std::byte> bytes() const { return {data_, size_}; }

  /// Gives the memory behind bytes [begin, end) back to the system. They can still be read, from the disk or its cache.
  void drop(size_t begin, size_t end) const;

 private:
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace sluice
