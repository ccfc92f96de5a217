#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/problem.h"
#include "data/jsonl_reader.h"
#include "data/row_file.h"

namespace sluice::data {

/// What a row is in its file, for messages.
enum class RowUnit {
  kLine,
  kElement,  // of a JSON array
  kRow,      // of a columnar file
};

/// A row where it lies.
struct RowPlace {
  const RowFile& file;
  std::string_view content;  // of the row; for what is no row, empty
  uint64_t begin = 0;        // bytes of the file before it
  uint32_t line = 0;         // where it begins, from 1
  RowUnit unit = RowUnit::kLine;
  /// Of a columnar file all columns, of which the row has only those that are read.
  const Columns* columns = nullptr;

  std::string name() const { return file.path().string(); }  // as messages call it
};

/// Collects what is wrong with rows, up to 20 problems.
class RowProblems {
 public:
  explicit RowProblems(const std::vector<JsonlField>& fields) : fields_(fields) {}

  bool full() const;

  /// Checks one row; false if it is no JSON object at all.
  bool check(const RowParser& parser, const RowPlace& place);

  /// What is wrong with a row that may not even be one, at a byte of it.
  void report(const RowPlace& place, size_t byte, size_t length, std::string message, std::string caret, std::string help = {});

  /// What is wrong with a file, as its reader says it.
  void add(const UserError& error);

  /// Throws a UserError with all problems, if there are any.
  void finish();

 private:
  void check_field(const RowPlace& place, Row& row, size_t index);
  bool is_repeated(size_t index, const std::string& fault, RowUnit unit);

  // What several rows have wrong in the same way.
  struct Repeated {
    size_t problem;  // of the first of them, in problems_
    RowUnit unit;
    int64_t rows = 1;
  };

  const std::vector<JsonlField>& fields_;
  Problems problems_;
  RowUnit unit_ = RowUnit::kLine;                                // of the last one
  std::map<std::pair<size_t, std::string>, Repeated> repeated_;  // by field and fault
};

/// `length` bytes from `byte` of a row, up to the end of that line. Only the neighbourhood is read; the file may be large.
SourceSpan span_in_row(const RowPlace& place, size_t byte, size_t length);

}  // namespace sluice::data
