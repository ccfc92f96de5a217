#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <string_view>

#include "base/file.h"

namespace sluice::data {

/// The longest row of a data file: a line, or an element of an array. A file without line breaks, and a small compressed file
/// that unfolds to a huge line, end here.
constexpr size_t kLongestRow = size_t{64} << 20;

/// As a number of rows: all.
constexpr size_t kAllRows = std::numeric_limits<size_t>::max();

/// The text of a data file, plain or gzip (told by its first bytes, not by its name), mapped into memory: any line can be read at
/// any time, and the system takes its pages back when memory is short.
///
/// A gzip file is decompressed once into a file without a name, which vanishes with the process. So a row costs the same wherever
/// it is, as many bytes of `scratch` are taken as the text has, and no memory. `scratch`: a folder on a disk; empty: $TMPDIR,
/// else /var/tmp, which unlike /tmp is not kept in memory.
///
/// Throws UserError: no right to read it, damaged or cut off gzip, a row of a gzip file that is longer than kLongestRow, a text
/// that is implausibly large beside its compressed form, a full disk, Parquet. The file must not change while it is open.
class RowFile {
 public:
  /// Of a gzip file at least the first `most_rows` rows are unpacked; what else of it is there may end anywhere.
  explicit RowFile(const std::filesystem::path& path, const std::filesystem::path& scratch = {}, size_t most_rows = kAllRows);

  const std::filesystem::path& path() const { return path_; }
  std::string_view text() const;

 private:
  std::filesystem::path path_;
  MappedFile content_;
};

/// Bytes that no string of a row of `path` exceeds: its longest row, as no escape of JSON is shorter than what it stands for.
/// Only the first 256 MiB of a plain file and 64 MiB of a compressed text are looked at. 0 when it cannot be read.
int64_t longest_text(const std::filesystem::path& path);

}  // namespace sluice::data
