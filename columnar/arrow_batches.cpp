#include <arrow/array/array_base.h>

#include <arrow/ipc/options.h>
#include <arrow/ipc/reader.h>

#include <string>
#include <utility>

#include "columnar/batches.h"
#include "columnar/plain_file.h"

namespace sluice::columnar {
namespace {

// The two formats differ in how a reader is opened and asked. To choose columns it is opened again: a reader takes them at its
// begin.
class ArrowBatches final : public Batches {
 public:
  ArrowBatches(std::string path, bool is_stream, arrow::MemoryPool* pool)
      : path_(std::move(path)), is_stream_(is_stream), pool_(pool), options_(arrow::ipc::IpcReadOptions::Defaults()) {
    options_.memory_pool = pool;
    options_.use_threads = false;
  }

  arrow::Status open() {
    ARROW_ASSIGN_OR_RAISE(input_, PlainFile::open(path_, pool_));
    if (is_stream_) {
      ARROW_ASSIGN_OR_RAISE(stream_, arrow::ipc::RecordBatchStreamReader::Open(input_, options_));
    } else {
      ARROW_ASSIGN_OR_RAISE(file_, arrow::ipc::RecordBatchFileReader::Open(input_, options_));
    }
    if (schema_ == nullptr) schema_ = is_stream_ ? stream_->schema() : file_->schema();
    return arrow::Status::OK();
  }

  const arrow::Schema& schema() const override { return *schema_; }

  arrow::Status choose(const std::set<std::string>& names) override {
    for (int i = 0; i < schema_->num_fields(); ++i) {
      if (names.contains(schema_->field(i)->name())) options_.included_fields.push_back(i);
    }
    return options_.included_fields.empty() ? arrow::Status::OK() : open();
  }

  arrow::Result<std::shared_ptr<arrow::RecordBatch>> next() override {
    std::shared_ptr<arrow::RecordBatch> batch;
    if (is_stream_) {
      ARROW_RETURN_NOT_OK(stream_->ReadNext(&batch));
    } else if (read_ < file_->num_record_batches()) {
      ARROW_ASSIGN_OR_RAISE(batch, file_->ReadRecordBatch(read_++));
    }
    if (batch != nullptr) ARROW_RETURN_NOT_OK(batch->ValidateFull());
    return batch;
  }

 private:
  std::string path_;
  bool is_stream_;
  arrow::MemoryPool* pool_;
  arrow::ipc::IpcReadOptions options_;
  std::shared_ptr<arrow::Schema> schema_;
  std::shared_ptr<PlainFile> input_;
  std::shared_ptr<arrow::ipc::RecordBatchStreamReader> stream_;
  std::shared_ptr<arrow::ipc::RecordBatchFileReader> file_;
  int read_ = 0;
};

}  // namespace

arrow::Result<std::unique_ptr<Batches>> open_arrow(const std::filesystem::path& path, bool is_stream, arrow::MemoryPool* pool) {
  auto batches = std::make_unique<ArrowBatches>(path.string(), is_stream, pool);
  ARROW_RETURN_NOT_OK(batches->open());
  return batches;
}

}  // namespace sluice::columnar
