#include "data/row_file.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "base/error.h"
#include "data/columnar.h"
#include "data/columnar_scan.h"
#include "data/file_window.h"
#include "data/gzip.h"
#include "data/row_meter.h"
#include "data/zstd.h"

namespace sluice::data {
namespace fs = std::filesystem;
namespace {

constexpr uint64_t kMostTimes = 200;                   // that a file may unfold to: texts shrink by 3 to 30 times
constexpr uint64_t kMostColumnar = uint64_t{1} << 30;  // bytes, if that is more: a dictionary makes much of little

// Stops what unfolds without end: DEFLATE's limit is 1032, zstd has none.
class UnfoldingLimit {
 public:
  UnfoldingLimit(const fs::path& path, uint64_t compressed_bytes)
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
  static constexpr uint64_t kFree = uint64_t{128} << 20;

  [[noreturn]] void refuse(const std::string& what) const {
    throw UserError(path_.string() + what, "one JSON object a line, or one array of them, is expected; is this a data file?");
  }

  const fs::path& path_;
  uint64_t most_bytes_;
  RowMeter rows_;
};

std::string beginning_of(const OpenFile& file) {
  return file.read(0, static_cast<size_t>(std::min<uint64_t>(file.size(), kMostMagic)));
}

bool is_compressed(std::string_view beginning) { return is_gzip(beginning) || is_zstd(beginning); }

void unpack(const OpenFile& file, const std::function<bool(std::string_view)>& sink) {
  if (is_gzip(beginning_of(file)))
    gunzip(file, sink);
  else
    unzstd(file, sink);
}

OpenFile unpacked(const OpenFile& file, const fs::path& scratch, size_t most_rows) {
  ScratchFile text(scratch);
  UnfoldingLimit limit(file.path(), file.size());
  unpack(file, [&](std::string_view piece) {
    limit.add(piece);
    text.write(piece);
    return limit.rows() < most_rows;
  });
  return OpenFile(text.descriptor(), file.path());
}

// A piece at a time, as far as `most_bytes`.
void add_beginning(const OpenFile& file, uint64_t most_bytes, RowMeter& rows) {
  FileWindow window(file);
  for (uint64_t at = 0; at < std::min(file.size(), most_bytes);) {
    const std::string_view piece = window.from(at);
    rows.add(piece);
    at += piece.size();
  }
}

}  // namespace

RowFile::RowFile(const fs::path& path, const fs::path& scratch, size_t most_rows) : path_(path) {
  OpenFile file(path);
  bytes_ = file.size();
  const std::string beginning = beginning_of(file);
  format_ = columnar_format(path, beginning);
  if (format_)
    rows_.emplace(scratch);
  else if (is_compressed(beginning))
    text_.emplace(unpacked(file, scratch, most_rows));
  else
    text_.emplace(std::move(file));
}

const OpenFile& RowFile::text() const {
  SLUICE_CHECK(text_.has_value(), "a columnar file is no text");
  return *text_;
}

std::string RowFile::row(uint64_t begin, size_t length) const {
  return rows_ ? rows_->read(begin, length) : text_->read(begin, length);
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
  constexpr uint64_t kMostPlain = uint64_t{256} << 20;
  constexpr size_t kMostUnpacked = size_t{64} << 20;
  constexpr size_t kLongestNumber = 32;  // "1e5" becomes "100000.0"
  try {
    const OpenFile file(path);
    const std::string beginning = beginning_of(file);
    if (const auto format = columnar_format(path, beginning)) return longest_columnar_row(path, *format, kMostUnpacked);
    RowMeter rows;
    if (is_compressed(beginning)) {
      unpack(file, [&](std::string_view piece) {
        rows.add(piece);
        return rows.seen() < kMostUnpacked;
      });
    } else {
      add_beginning(file, kMostPlain, rows);
    }
    return static_cast<int64_t>(std::max(rows.longest(), kLongestNumber));
  } catch (const UserError&) {
    return 0;  // who opens it to read it will say why
  }
}

}  // namespace sluice::data
