#pragma once

#include <arrow/memory_pool.h>
#include <arrow/record_batch.h>
#include <arrow/result.h>
#include <arrow/type.h>

#include <filesystem>
#include <memory>
#include <set>
#include <string>

namespace sluice::columnar {

/// The rows of a file, some at a time. Every offset and index of a batch is within its buffers. Not thread-safe.
class Batches {
 public:
  virtual ~Batches() = default;

  /// All columns of the file.
  virtual const arrow::Schema& schema() const = 0;

  /// Decodes the columns of these names only; all, if there are none. Before the first next().
  virtual arrow::Status choose(const std::set<std::string>& names) = 0;

  /// Null after the last one.
  virtual arrow::Result<std::shared_ptr<arrow::RecordBatch>> next() = 0;
};

/// `pool` outlives what they return.
arrow::Result<std::unique_ptr<Batches>> open_parquet(const std::filesystem::path& path, arrow::MemoryPool* pool);

/// Arrow's own two formats: the file (Feather is one), whose first bytes say so, and the stream.
arrow::Result<std::unique_ptr<Batches>> open_arrow(const std::filesystem::path& path, bool is_stream, arrow::MemoryPool* pool);

}  // namespace sluice::columnar
