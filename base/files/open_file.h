#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

namespace sluice {

/// What to do about a file that another program has written into while it was being read.
inline constexpr const char* kBringFileBack =
    "bring it back as it was; a new file that takes its place (mv) does no harm, writing into it does";

/// A regular file that stays open, of which any bytes can be read at any time. Of one whose place another file takes it keeps the
/// old content. Throws UserError when it cannot be opened, for what MappedFile refuses too, and for bytes that it had when it was
/// opened and that somebody has cut off since: unlike a map, such a file ends no process.
///
/// It holds a descriptor; see keep_room_beside(). Moves, does not copy. Reading from many threads.
class OpenFile {
 public:
  explicit OpenFile(const std::filesystem::path& path);

  /// Of an open descriptor, which stays the caller's and may be closed after. `path` is for messages.
  OpenFile(int descriptor, std::filesystem::path path);
  ~OpenFile();
  OpenFile(OpenFile&& other) noexcept;
  OpenFile& operator=(OpenFile&&) = delete;

  const std::filesystem::path& path() const { return path_; }

  /// Bytes that it had when it was opened; what is written after them is not read.
  uint64_t size() const { return size_; }

  /// The bytes from `begin` on, as many as `into` has; all of them are within size().
  void read(uint64_t begin, std::span<char> into) const;
  std::string read(uint64_t begin, size_t length) const;

 private:
  [[noreturn]] void fail_cut_short() const;

  std::filesystem::path path_;
  int descriptor_ = -1;
  uint64_t size_ = 0;
};

/// Told of each descriptor that is kept for long: a process that holds half of as many as it may is allowed as many as it can be
/// (the hard limit), so that a run may read thousands of files and still open others.
void keep_room_beside(int descriptor);

}  // namespace sluice
