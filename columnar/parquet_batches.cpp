
#include <parquet/arrow/reader.h>
#include <parquet/arrow/schema.h>
#include <parquet/file_reader.h>
#include <parquet/metadata.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "columnar/batches.h"
#include "columnar/plain_file.h"

namespace sluice::columnar {
namespace {

constexpr int64_t kReadAhead = int64_t{1} << 20;   // bytes of each column
constexpr int64_t kBatchBytes = int64_t{4} << 20;  // of decoded values, as far as the file says how large they are
constexpr int64_t kMostBatchRows = 8192;

void add_leaves(const parquet::arrow::SchemaField& field, std::vector<int>& columns) {
  if (field.is_leaf()) columns.push_back(field.column_index);
  for (const auto& child : field.children) add_leaves(child, columns);
}

// As many as make kBatchBytes on average.
int64_t rows_of_batch(const parquet::FileMetaData& file, const std::vector<int>& columns) {
  int64_t bytes = 0;
  for (int group = 0; group < file.num_row_groups(); ++group) {
    const auto row_group = file.RowGroup(group);
    for (const int column : columns) bytes += std::max<int64_t>(0, row_group->ColumnChunk(column)->total_uncompressed_size());
  }
  const int64_t row_bytes = bytes / std::max<int64_t>(1, file.num_rows()) + 1;
  return std::clamp<int64_t>(kBatchBytes / row_bytes, 1, kMostBatchRows);
}

class ParquetBatches final : public Batches {
 public:
  ParquetBatches(std::unique_ptr<parquet::arrow::FileReader> file, std::shared_ptr<arrow::Schema> schema)
      : file_(std::move(file)), schema_(std::move(schema)) {}

  const arrow::Schema& schema() const override { return *schema_; }

  arrow::Status choose(const std::set<std::string>& names) override {
    for (const auto& field : file_->manifest().schema_fields) {
      if (names.empty() || names.contains(field.field->name())) add_leaves(field, columns_);
    }
    file_->set_batch_size(rows_of_batch(*file_->parquet_reader()->metadata(), columns_));
    return arrow::Status::OK();
  }

  // One row group after the other, so that damage is known by its place.
  arrow::Result<std::shared_ptr<arrow::RecordBatch>> next() override {
    for (;;) {
      if (rows_ != nullptr) {
        ARROW_ASSIGN_OR_RAISE(auto batch, rows_->Next());
        if (batch != nullptr) return batch;
      }
      if (group_ == file_->num_row_groups()) return nullptr;
      ARROW_ASSIGN_OR_RAISE(rows_, file_->GetRecordBatchReader({group_++}, columns_));
    }
  }

 private:
  std::unique_ptr<parquet::arrow::FileReader> file_;
  std::shared_ptr<arrow::Schema> schema_;
  std::vector<int> columns_;  // leaves that are decoded
  int group_ = 0;             // the next
  std::unique_ptr<arrow::RecordBatchReader> rows_;
};

}  // namespace

arrow::Result<std::unique_ptr<Batches>> open_parquet(const std::filesystem::path& path, arrow::MemoryPool* pool) {
  ARROW_ASSIGN_OR_RAISE(auto input, PlainFile::open(path, pool));
  parquet::ReaderProperties properties(pool);
  properties.enable_buffered_stream();  // else all of a row group's columns would be in memory
  properties.set_buffer_size(kReadAhead);
  properties.set_page_checksum_verification(true);
  parquet::ArrowReaderProperties rows(/*use_threads=*/false);
  rows.set_pre_buffer(false);
  parquet::arrow::FileReaderBuilder builder;
  ARROW_RETURN_NOT_OK(builder.Open(std::move(input), properties));
  std::unique_ptr<parquet::arrow::FileReader> file;
  ARROW_RETURN_NOT_OK(builder.memory_pool(pool)->properties(rows)->Build(&file));
  std::shared_ptr<arrow::Schema> schema;
  ARROW_RETURN_NOT_OK(file->GetSchema(&schema));
  return std::make_unique<ParquetBatches>(std::move(file), std::move(schema));
}

}  // namespace sluice::columnar
