#include "data/row_file.h"

#include <algorithm>
#include <functional>
#include <span>
#include <utility>

#include "base/error.h"
#include "data/columnar.h"
#include "data/columnar_scan.h"
#include "data/gzip.h"
#include "data/row_meter.h"
#include "data/zstd.h"

namespace sluice::data {
namespace fs = std::filesystem;
namespace {

constexpr size_t kMostMagic = 64;                  // bytes at the begin of a file that tell what it is
constexpr size_t kMostTimes = 200;                 // that a file may unfold to: texts shrink by 3 to 30 times
constexpr size_t kMostColumnar = size_t{1} << 30;  // bytes, if that is more: a dictionary makes much of little

std::string_view as_text(std::span<const std::byte> bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

// Stops what unfolds without end: DEFLATE's limit is 1032, zstd has none.
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

  [[noreturn]] void refuse(const std::string& what) const {
    throw UserError(path_.string() + what, "one JSON object a line, or one array of them, is expected; is this a data file?");
  }

  const fs::path& path_;
  size_t most_bytes_;
  RowMeter rows_;
};

bool is_compressed(const MappedFile& file) { return is_gzip(file.bytes()) || is_zstd(file.bytes()); }

void unpack(const MappedFile& file, const fs::path& path, const std::function<bool(std::string_view)>& sink) {
  if (is_gzip(file.bytes()))
    gunzip(file.bytes(), path.string(), sink);
  else
    unzstd(file.bytes(), path.string(), sink);
}

MappedFile unpacked(const MappedFile& file, const fs::path& path, const fs::path& scratch, size_t most_rows) {
  ScratchFile text(scratch);
  UnfoldingLimit limit(path, file.bytes().size());
  unpack(file, path, [&](std::string_view piece) {
    limit.add(piece);
    text.write(piece);
    return limit.rows() < most_rows;
  });
  return MappedFile(text.descriptor(), path);
}

std::optional<ColumnarFormat> format_of(const MappedFile& file, const fs::path& path) {
  return columnar_format(path, as_text(file.bytes()).substr(0, kMostMagic));
}

}  // namespace

RowFile::RowFile(const fs::path& path, const fs::path& scratch, size_t most_rows) : path_(path) {
  MappedFile file(path);
  bytes_ = file.bytes().size();
  format_ = format_of(file, path);
  if (format_)
    rows_.emplace(scratch);
  else if (is_compressed(file))
    text_.emplace(unpacked(file, path, scratch, most_rows));
  else
    text_.emplace(std::move(file));
}

std::string_view RowFile::text() const { return text_ ? as_text(text_->bytes()) : std::string_view(); }

std::string RowFile::row(uint64_t begin, size_t length) const {
  return rows_ ? rows_->read(begin, length) : std::string(text().substr(begin, length));
}

uint64_t RowFile::append(std::string_view rows) {
  SLUICE_CHECK(rows_.has_value(), "only columnar files are filled");
  const uint64_t begin = rows_->size();
  if (begin + rows.size() > std::max(kMostColumnar, bytes_ * kMostTimes))
    throw UserError(path_.string() + " unfolds to more than 1 GiB, and 200 times its size", "is this a data file?");
  rows_->write(rows);
  return begin;
}

int64_t longest_text(const fs::path& path) {
  constexpr size_t kMostPlain = size_t{256} << 20, kMostUnpacked = size_t{64} << 20;
  constexpr size_t kLongestNumber = 32;  // "1e5" becomes "100000.0"
  try {
    const MappedFile file(path);
    if (const auto format = format_of(file, path)) return longest_columnar_row(path, *format, kMostUnpacked);
    RowMeter rows;
    if (is_compressed(file)) {
      unpack(file, path, [&](std::string_view piece) {
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
