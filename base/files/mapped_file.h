#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <span>
#include <string_view>

namespace sluice {

/// A read-only memory map of a whole file. Throws UserError when the file cannot be opened, is not a regular one, or is large and
/// hollow: almost nothing of it is on the disk, as a copy that was broken off leaves it, and reading it would take hours to find
/// zeros. Moves, does not copy.
///
/// Somebody who cuts the file off while it is mapped ends the process: the system has no other answer (SIGBUS). So it is for
/// files that programs write once and replace as a whole, weights and checkpoints; what people edit is read through OpenFile.
class MappedFile {
 public:
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&&) = delete;

  std::span<const std::byte> bytes() const { return {data_, size_}; }

  /// Calls visit with all bytes in order, piece by piece, and drops each piece after its visit: of a file of any size, a megabyte
  /// is in memory at a time.
  void for_each_piece(const std::function<void(std::string_view piece)>& visit) const;

  /// Gives the memory after bytes [begin, end) back to the system. They can still be read, from the disk or its cache.
  void drop(size_t begin, size_t end) const;

 private:
  MappedFile(int descriptor, const std::filesystem::path& path);

  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace sluice
