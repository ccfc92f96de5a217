#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/files/open_file.h"

namespace sluice::data {

/// One pass over a file of any size, from its begin to its end, with a piece of it in memory: about a megabyte, or as much as is
/// asked for at once. Throws UserError as OpenFile does. `file` outlives it. Not thread-safe.
class FileWindow {
 public:
  explicit FileWindow(const OpenFile& file) : file_(file) {}

  uint64_t size() const { return file_.size(); }

  /// The bytes from `begin` on: `least` of them or more, and fewer only where the file ends before. They stay until the next
  /// call, which begins neither before these nor after their end.
  std::string_view from(uint64_t begin, size_t least = 1);

 private:
  const OpenFile& file_;
  uint64_t begin_ = 0;  // of bytes_ in the file
  std::string bytes_;
};

}  // namespace sluice::data
