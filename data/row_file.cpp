#include "data/row_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>

#include "base/error.h"
#include "data/gzip.h"
#include "data/parquet.h"
#include "data/row_meter.h"

namespace sluice::data {
namespace fs = std::filesystem;
namespace {

std::string_view as_text(std::span<const std::byte> bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

// A file without a name, for writing and mapping.
class ScratchFile {
 public:
  explicit ScratchFile(const fs::path& folder) : folder_(folder) {
    descriptor_ = ::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (descriptor_ < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL)) open_and_unlink();
    if (descriptor_ < 0) fail("create a temporary file in");
  }
  ~ScratchFile() { ::close(descriptor_); }
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;

  void write(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t count = ::write(descriptor_, bytes.data(), bytes.size());
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) fail("write a temporary file in");
      bytes.remove_prefix(static_cast<size_t>(count));
    }
  }

  int descriptor() const { return descriptor_; }

 private:
  // For file systems that know no O_TMPFILE.
  void open_and_unlink() {
    std::string name = (folder_ / "sluice-XXXXXX").string();
    descriptor_ = ::mkostemp(name.data(), O_CLOEXEC);
    if (descriptor_ >= 0) ::unlink(name.c_str());
  }

  [[noreturn]] void fail(const std::string& action) const {
    throw UserError("cannot " + action + " " + folder_.string() + ": " + std::strerror(errno),
                    "compressed data is unpacked there; TMPDIR names another folder, or unpack the file with gunzip");
  }

  const fs::path& folder_;
  int descriptor_ = -1;
};

fs::path scratch_folder(const fs::path& wanted) {
  if (!wanted.empty()) return wanted;
  if (const char* named = std::getenv("TMPDIR"); named != nullptr && *named != '\0') return named;
  return ::access("/var/tmp", W_OK) == 0 ? fs::path("/var/tmp") : fs::temp_directory_path();
}

// Stops what unfolds without end: texts shrink by 3 to 30 times, DEFLATE's limit is 1032.
class UnfoldingLimit {
 public:
  UnfoldingLimit(const fs::path& path, size_t compressed_bytes)
      : path_(path), most_bytes_(std::max(kFree, compressed_bytes * kMostTimes)) {}

  void add(std::string_view piece) {
    rows_.add(piece);
    if (rows_.longest() > kLongestRow) {
      const std::string unit = rows_.is_array() ? ": an element" : ": a line";
      refuse(":" + std::to_string(rows_.line()) + unit + " of more than 64 MiB");
    }
    if (rows_.seen() > most_bytes_) refuse(" unfolds to more than " + std::to_string(kMostTimes) + " times its size");
  }

  size_t rows() const { return rows_.rows(); }

 private:
  static constexpr size_t kFree = size_t{128} << 20;
  static constexpr size_t kMostTimes = 200;

  [[noreturn]] void refuse(const std::string& what) const {
    throw UserError(path_.string() + what, "one JSON object a line, or one array of them, is expected; is this a data file?");
  }

  const fs::path& path_;
  size_t most_bytes_;
  RowMeter rows_;
};

MappedFile open_content(const fs::path& path, const fs::path& scratch, size_t most_rows) {
  MappedFile file(path);
  if (begins_like_parquet(as_text(file.bytes()))) refuse_parquet(path);
  if (!is_gzip(file.bytes())) return file;
  const fs::path folder = scratch_folder(scratch);
  ScratchFile unpacked(folder);
  UnfoldingLimit limit(path, file.bytes().size());
  gunzip(file.bytes(), path.string(), [&](std::string_view piece) {
    limit.add(piece);
    unpacked.write(piece);
    return limit.rows() < most_rows;
  });
  return MappedFile(unpacked.descriptor(), path);
}

}  // namespace

RowFile::RowFile(const fs::path& path, const fs::path& scratch, size_t most_rows)
    : path_(path), content_(open_content(path, scratch, most_rows)) {}

std::string_view RowFile::text() const { return as_text(content_.bytes()); }

int64_t longest_text(const fs::path& path) {
  constexpr size_t kMostPlain = size_t{256} << 20, kMostUnpacked = size_t{64} << 20;
  constexpr size_t kLongestNumber = 32;  // "1e5" becomes "100000.0"
  try {
    const MappedFile file(path);
    RowMeter rows;
    if (is_gzip(file.bytes())) {
      gunzip(file.bytes(), path.string(), [&](std::string_view piece) {
        rows.add(piece);
        return rows.seen() < kMostUnpacked;
      });
    } else {
      rows.add(as_text(file.bytes()).substr(0, kMostPlain));
    }
    return static_cast<int64_t>(std::max(rows.longest(), kLongestNumber));
  } catch (const UserError&) {
    return 0;  // who opens it to read it will say why
  }
}

}  // namespace sluice::data
