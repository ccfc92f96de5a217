#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace sluice::data {

/// A file without a name, which vanishes with the process, however that ends. In `folder`, on a disk; empty: in $TMPDIR, else
/// in /var/tmp, which unlike /tmp is not kept in memory. Throws UserError that names the folder when it is full or may not be
/// written. Moves, does not copy. Reading from many threads.
class ScratchFile {
 public:
  explicit ScratchFile(const std::filesystem::path& folder);
  ~ScratchFile();
  ScratchFile(ScratchFile&& other) noexcept;
  ScratchFile& operator=(ScratchFile&&) = delete;

  /// After what was written before.
  void write(std::string_view bytes);

  uint64_t size() const { return size_; }

  /// Bytes that were written. Only they are in memory, unlike those of a map.
  std::string read(uint64_t begin, size_t length) const;

  int descriptor() const { return descriptor_; }

 private:
  void open_and_unlink();
  [[noreturn]] void fail(const std::string& action) const;

  std::filesystem::path folder_;
  int descriptor_ = -1;
  uint64_t size_ = 0;
};

}  // namespace sluice::data
