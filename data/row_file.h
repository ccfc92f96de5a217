#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "base/files/open_file.h"
#include "data/columnar_file.h"
#include "data/scratch_file.h"

namespace sluice::data {

/// The longest row of a data file: a line, or an element of an array. A file without line breaks, and a small compressed file
/// that unfolds to a huge line, end here.
constexpr size_t kLongestRow = size_t{64} << 20;

/// As a number of rows: all.
constexpr size_t kAllRows = std::numeric_limits<size_t>::max();

/// A data file, of which any row can be read at any time. What it is its first bytes tell, not its name.
///
/// A plain file stays open, and what is asked for is read of it. A compressed file, gzip or zstd, is decompressed once into a
/// file without a name, which vanishes with the process. So a row costs the same wherever it is, as many bytes of `scratch` are
/// taken as the text has, and no memory. `scratch`: see ScratchFile. Of a columnar file, Parquet or Arrow, the rows come into
/// such a file too, as JSON; who reads the file's columns fills it.
///
/// Throws UserError: no right to read it, damaged or cut off, a row of a compressed file that is longer than kLongestRow, a
/// text that is implausibly large beside its compressed form, a full disk; also where the file is cut short while it is open.
/// Whether it is written into is for its reader to find out: what row() gives is then another text. Const use from many threads.
class RowFile {
 public:
  /// Of a compressed file at least the first `most_rows` rows are unpacked; what else of it is there may end anywhere.
  explicit RowFile(const std::filesystem::path& path, const std::filesystem::path& scratch = {}, size_t most_rows = kAllRows);

  const std::filesystem::path& path() const { return path_; }

  /// Nothing for a file of texts.
  std::optional<ColumnarFormat> columnar() const { return format_; }

  /// Of a file of texts, plain.
  const OpenFile& text() const;

  /// Bytes of the text, or of what append() was given.
  std::string row(uint64_t begin, size_t length) const;
  uint64_t size() const { return rows_ ? rows_->size() : text_->size(); }

  /// Rows of a columnar file, after those that were there. Returns where they begin.
  uint64_t append(std::string_view rows);

 private:
  std::filesystem::path path_;
  uint64_t bytes_ = 0;  // of the file itself
  std::optional<ColumnarFormat> format_;
  std::optional<OpenFile> text_;  // one of the two is there
  std::optional<ScratchFile> rows_;
};

/// Bytes that no string of a row of `path` exceeds: its longest row, as no escape of JSON is shorter than what it stands for.
/// Only the first 256 MiB of a plain file and 64 MiB of another are looked at. 0 when it cannot be read.
int64_t longest_text(const std::filesystem::path& path);

}  // namespace sluice::data
