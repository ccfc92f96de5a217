#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/json/json.h"
#include "base/problem.h"
#include "data/row_file.h"
#include "data/row_parser.h"

namespace sluice::data {

/// What a field may be.
enum class FieldKind {
  kText,      // a string, or a number: then it is its JSON text
  kMessages,  // a conversation, see messages.h
  kTextOrMessages,
  kFlag,  // true or false, or the numbers 1 and 0
};

/// A field that every row must have. `name` may reach into objects: "meta.answer".
struct JsonlField {
  std::string name;
  std::string param;  // the parameter that names it, for messages: "prompt_field"
  FieldKind kind = FieldKind::kText;
  bool required = true;
  bool nullable = false;        // where it is required: null will do, and is an empty text
  std::string list_param = {};  // the parameter that would read a conversation instead, for messages; empty: there is none
};

/// Files of one JSON object a line, or of one JSON array of objects, plain, gzip or zstd, and columnar files (Parquet, Arrow),
/// read as one. What a file is its first bytes tell. Blank lines are passed over; "\r\n" ends a line too, and a byte order mark
/// is no part of the first. Of a columnar file only the columns are read that `fields` name; without fields, all.
///
/// The constructor reads all files once and proves that each row is an object with all of `fields`. It throws one UserError
/// with up to 20 broken rows, each with file, line, column and what is expected; files without any row are refused too. Rows
/// stay in their files (see RowFile) and are parsed when they are asked for: 24 bytes of memory a row. Rows are shorter than 64
/// MiB. A row that is asked for is the one that was proved, to the bit: whatever gives rows throws UserError that names the file
/// when somebody has cut it short or written into the row since. What is written after the rows, the time of the last change and
/// another file in the place of this one make no difference. Const use from many threads.
class JsonlReader {
 public:
  /// `scratch`: where compressed files are unpacked, see RowFile. `most_rows`: of each file no more are read, and nothing is
  /// proved of the others.
  JsonlReader(const std::vector<std::filesystem::path>& files, std::vector<JsonlField> fields,
              const std::filesystem::path& scratch = {}, size_t most_rows = kAllRows);

  size_t rows() const { return rows_.size(); }
  const std::vector<JsonlField>& fields() const { return fields_; }

  /// The fields of a row, in their order; null where an optional one is missing. Conversations have role and content, whatever
  /// the file calls them (see messages.h).
  std::vector<Json> values(size_t row) const;

  /// Likewise, of fields that are all texts; an optional one that is missing is empty.
  std::vector<std::string> texts(size_t row) const;

  /// The row as its file has it, for who does not know its fields; of a columnar file as JSON, of all columns if no fields were
  /// asked for.
  std::string text_of(size_t row) const;

  /// The row, marked as a whole; of one of several lines the first.
  SourceSpan where(size_t row) const;

  /// Leaves out the rows for which `keep` [rows()] is false; those after them move up.
  void keep_only(const std::vector<bool>& keep);

 private:
  struct StoredRow {
    uint64_t begin = 0;
    uint32_t length = 0;
    uint32_t line = 0;      // from 1
    uint32_t checksum = 0;  // of the text that was proved
  };
  class Scan;

  const RowFile& file_of(size_t row) const;

  std::vector<JsonlField> fields_;
  RowParser parser_;
  std::vector<RowFile> files_;
  std::vector<size_t> first_rows_;  // [files]
  std::vector<StoredRow> rows_;
};

/// A field that is a text, as text.
std::string text_of(const Json& value);

}  // namespace sluice::data
