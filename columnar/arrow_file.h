#pragma once

#include <arrow/memory_pool.h>
#include <arrow/record_batch.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "columnar/batches.h"
#include "columnar/field_proof.h"
#include "columnar/row_text.h"
#include "columnar/value_writer.h"
#include "data/columnar_file.h"

namespace sluice::columnar {

/// The rows of one file through Apache Arrow, whose statuses and exceptions end here: they become UserErrors.
class ArrowFile final : public data::ColumnarFile {
 public:
  ArrowFile(std::filesystem::path path, data::ColumnarFormat format, std::vector<data::ColumnarField> fields);

  const data::Columns& columns() const override { return columns_; }
  const std::vector<data::ColumnKind>& kinds() const override { return kinds_; }
  bool next(data::ColumnarRows& rows) override;

 private:
  void choose_columns();
  bool read_batch();
  void add_row(data::ColumnarRows& rows);

  std::filesystem::path path_;
  std::vector<data::ColumnarField> fields_;
  arrow::CappedMemoryPool pool_;
  std::unique_ptr<Batches> batches_;
  data::Columns columns_;
  std::set<std::string> chosen_;    // names of columns; empty: all
  std::vector<FieldPlace> places_;  // [fields]
  std::vector<data::ColumnKind> kinds_;
  bool is_within_limits_ = true;

  int64_t rows_before_ = 0;  // the batch
  std::shared_ptr<arrow::RecordBatch> batch_;
  std::vector<std::pair<std::string, std::unique_ptr<ValueWriter>>> writers_;  // of its columns that are chosen
  std::vector<FieldProof> proofs_;                                             // [fields]
  int64_t row_ = 0;                                                            // of the batch, the next
  RowText text_;
};

}  // namespace sluice::columnar
