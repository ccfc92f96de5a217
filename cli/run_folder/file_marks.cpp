#include "cli/run_folder/file_marks.h"

#include <algorithm>
#include <cstdint>

#include "base/files/file_part.h"
#include "base/files/path_kind.h"
#include "base/numbers/crc32c.h"
#include "base/text/strings.h"

namespace sluice::cli {
namespace fs = std::filesystem;
namespace {

constexpr int64_t kBeginning = 1 << 20, kBlock = 64 << 10, kBlocks = 15;

uint32_t add_samples(const fs::path& path, int64_t bytes, uint32_t checksum) {
  checksum = crc32c(read_part_of_file(path, 0, kBeginning), checksum);
  for (int64_t block = 1; block <= kBlocks && bytes > kBeginning; ++block)
    checksum = crc32c(read_part_of_file(path, bytes / kBlocks * block - kBlock, kBlock), checksum);
  return checksum;
}

}  // namespace

std::string mark_of_files(std::vector<fs::path> files) {
  std::ranges::sort(files);
  int64_t all = 0;
  uint32_t checksum = 0;
  for (const fs::path& path : files) {
    const int64_t bytes = file_bytes(path);
    all += bytes;
    checksum = add_samples(path, bytes, crc32c(path.filename().string() + ":" + std::to_string(bytes) + ";", checksum));
  }
  return plural(all, "byte") + ", checksum " + std::to_string(checksum);
}

}  // namespace sluice::cli
