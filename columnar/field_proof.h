#pragma once

#include <arrow/record_batch.h>
#include <arrow/type.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "columnar/value_writer.h"
#include "data/columnar_file.h"

namespace sluice::columnar {

/// Where a field is: a column, and members of structs on the way from there.
struct FieldPlace {
  std::vector<int> path;  // indices; empty: there is no such column
  data::ColumnKind kind = data::ColumnKind::kMissing;
};

/// False where a row may be refused by RowParser for its types alone: a struct has two members of one name, or too many.
bool is_within_limits(const arrow::Schema& schema);

/// The place of a field, by its exact name or else along its dots, as find_field() (data/row_parser.h) looks for it.
FieldPlace place_of(const data::ColumnarField& field, const arrow::Schema& schema);

/// Says of rows of a batch, by their nulls alone, whether a field needs a second look. What `batch` holds was found whole.
class FieldProof {
 public:
  FieldProof(const data::ColumnarField& field, const FieldPlace& place, const arrow::RecordBatch& batch);

  bool holds(int64_t row) const;

 private:
  bool holds_messages(int64_t row) const;

  bool may_be_null_;
  bool may_be_missing_;
  data::ColumnKind kind_;
  std::vector<std::shared_ptr<arrow::Array>> parents_;  // structs on the way
  std::shared_ptr<arrow::Array> array_;
  std::unique_ptr<ValueWriter> values_;     // which knows what is written as null
  std::shared_ptr<arrow::Array> messages_;  // the structs of all rows; null: it is no list of them
  std::shared_ptr<arrow::Array> roles_;
};

}  // namespace sluice::columnar
