#include "base/files/file_part.h"

#include <unistd.h>

#include "base/files/file_calls.h"

namespace sluice {

std::string read_part_of_file(const std::filesystem::path& path, int64_t begin, int64_t bytes) {
  const ScopedDescriptor file(open_for_reading(path));
  std::string part(static_cast<size_t>(bytes), '\0');
  size_t filled = 0;
  while (filled < part.size()) {
    const auto at = static_cast<off_t>(begin + static_cast<int64_t>(filled));
    const ssize_t count = uninterrupted([&] { return ::pread(file.value(), part.data() + filled, part.size() - filled, at); });
    if (count < 0) fail_with_errno("read", path);
    if (count == 0) break;
    filled += static_cast<size_t>(count);
  }
  part.resize(filled);
  return part;
}

}  // namespace sluice
