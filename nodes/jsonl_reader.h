#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/json.h"
#include "base/problem.h"

namespace sluice::nodes {

/// A text field that every row must have.
struct JsonlField {
  std::string name;
  std::string param;  // the parameter that names it, for messages: "prompt_field"
};

/// Bytes that no text of a line of `path` exceeds: its longest line, as no escape of JSON is shorter than what it stands for.
/// Only the first 256 MiB are looked at. 0 when it cannot be read.
int64_t longest_text(const std::filesystem::path& path);

/// A file of one JSON object a line. Blank lines are passed over; "\r\n" ends a line too, and a byte order mark is no part of the
/// first.
///
/// The constructor reads the whole file once and proves that each row is an object in which each of `fields` is a string or a
/// number. It throws one UserError with up to 20 broken lines, each with file, line, column and what is expected; a file without
/// rows is refused too. Rows stay in the mapped file, parsed when they are asked for: 16 bytes of memory a row.
/// The file must not change while it is open. Immutable: const use from many threads.
class JsonlReader {
 public:
  JsonlReader(const std::filesystem::path& path, std::vector<JsonlField> fields);

  size_t rows() const { return rows_.size(); }

  /// The texts of `fields` in their order; a number is its JSON text.
  std::vector<std::string> texts(size_t row) const;

  /// The row's line, marked as a whole.
  SourceSpan where(size_t row) const;

 private:
  struct Row {
    uint64_t begin = 0;
    uint32_t length = 0;
    uint32_t line = 0;  // from 1
  };
  class Scan;

  std::string_view text() const;
  std::string_view text_of(const Row& row) const { return text().substr(row.begin, row.length); }

  std::filesystem::path path_;
  MappedFile file_;
  std::vector<JsonlField> fields_;
  std::vector<Row> rows_;
};

}  // namespace sluice::nodes
