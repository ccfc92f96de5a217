#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string_view>

#include "base/file.h"

namespace sluice::data {

/// The longest line of a data file. A file without line breaks, and a small compressed file that unfolds to a huge line, end
/// here.
constexpr size_t kLongestLine = size_t{64} << 20;

/// The text of a data file, plain or gzip (told by its first bytes, not by its name), mapped into memory: any line can be read at
/// any time, and the system takes its pages back when memory is short.
///
/// A gzip file is decompressed once into a file without a name, which vanishes with the process. So a row costs the same wherever
/// it is, as many bytes of `scratch` are taken as the text has, and no memory. `scratch`: a folder on a disk; empty: $TMPDIR,
/// else /var/tmp, which unlike /tmp is not kept in memory.
///
/// Throws UserError: no right to read it, damaged or cut off gzip, a line of a gzip file that is longer than kLongestLine, a text
/// that is implausibly large beside its compressed form, a full disk, Parquet. The file must not change while it is open.
class RowFile {
 public:
  explicit RowFile(const std::filesystem::path& path, const std::filesystem::path& scratch = {});

  const std::filesystem::path& path() const { return path_; }
  std::string_view text() const;

 private:
  std::filesystem::path path_;
  MappedFile content_;
};

/// Bytes that no string of a line of `path` exceeds: its longest line, as no escape of JSON is shorter than what it stands for.
/// Only the first 256 MiB of a plain file and 64 MiB of a compressed text are looked at. 0 when it cannot be read.
int64_t longest_text(const std::filesystem::path& path);

}  // namespace sluice::data
