#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "data/columnar_file.h"
#include "data/jsonl_reader.h"
#include "data/row_file.h"

namespace sluice::data {

/// The one pass over a columnar file: decodes the columns that `fields` read, once and in order, and puts each row into `file`.
///
/// Most rows are proved by the types of the columns and by which values are null, at memory's speed. The others are JSON texts
/// as those of a file of lines, and are for the same checks. Throws UserError as ColumnarFile does. Not thread-safe.
class ColumnarScan {
 public:
  ColumnarScan(RowFile& file, const std::vector<JsonlField>& fields);

  struct Row {
    std::string_view text;  // until the next call
    uint64_t begin = 0;     // in `file`
    bool is_proved = false;
  };

  /// False: there are no more.
  bool next(Row& row);

  /// All columns of the file.
  const Columns& columns() const { return rows_->columns(); }

 private:
  RowFile& file_;
  std::unique_ptr<ColumnarFile> rows_;
  bool kinds_fit_ = true;  // a proof of the library is one of all fields
  ColumnarRows read_;
  size_t row_ = 0;      // of read_, the next
  size_t at_ = 0;       // where it begins there
  uint64_t begin_ = 0;  // of read_ in file_
};

/// Bytes of the longest of the first rows, which are JSON of about `most_bytes` together.
int64_t longest_columnar_row(const std::filesystem::path& path, ColumnarFormat format, size_t most_bytes);

}  // namespace sluice::data
