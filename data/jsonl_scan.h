#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/problem.h"
#include "data/jsonl_reader.h"

namespace sluice::data {

/// Collects what is wrong with rows, up to 20 problems.
class RowProblems {
 public:
  explicit RowProblems(const std::vector<JsonlField>& fields) : fields_(fields) {}

  bool full() const;

  /// Checks one line. `file` is how messages call it.
  void check(const RowParser& parser, const std::string& file, uint32_t line, std::string_view content);

  /// Throws a UserError with all problems, if there are any.
  void finish();

 private:
  struct Line {
    const std::string& file;
    uint32_t number;
    std::string_view content;
  };

  void check_field(const Line& line, const Row& row, size_t index);
  void report_missing(const Line& line, const Row& row, size_t index);
  void report(const Line& line, size_t byte, size_t length, std::string message, std::string caret);

  const std::vector<JsonlField>& fields_;
  Problems problems_;
  std::map<size_t, int64_t> lacking_;         // lines without the field, by index of the field
  std::map<size_t, size_t> lacking_problem_;  // where the first of them is in problems_
};

/// A place in a data file: `length` bytes from `byte` of a line. Only the neighbourhood of it is copied; the file may be large.
SourceSpan span_in_line(const std::string& file, uint32_t line, std::string_view content, size_t byte, size_t length);

}  // namespace sluice::data
