#pragma once

#include <arrow/io/file.h>
#include <arrow/io/interfaces.h>
#include <arrow/memory_pool.h>
#include <arrow/result.h>
#include <arrow/util/future.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <utility>

namespace sluice::columnar {

/// A file that is read on the thread that asks, also where Arrow would ask threads of its own: those hold buffers for a while
/// after an error, longer than the memory pool that they belong to is there. No buffer is larger than what the file has left: a
/// damaged file names any length, and Arrow asks for it. Not thread-safe.
class PlainFile final : public arrow::io::RandomAccessFile {
 public:
  using Bytes = std::shared_ptr<arrow::Buffer>;

  static arrow::Result<std::shared_ptr<PlainFile>> open(const std::filesystem::path& path, arrow::MemoryPool* pool) {
    ARROW_ASSIGN_OR_RAISE(auto file, arrow::io::ReadableFile::Open(path.string(), pool));
    ARROW_ASSIGN_OR_RAISE(const int64_t size, file->GetSize());
    return std::make_shared<PlainFile>(std::move(file), size);
  }

  PlainFile(std::shared_ptr<arrow::io::ReadableFile> file, int64_t size) : file_(std::move(file)), size_(size) {}

  arrow::Status Close() override { return file_->Close(); }
  bool closed() const override { return file_->closed(); }
  arrow::Result<int64_t> Tell() const override { return file_->Tell(); }
  arrow::Status Seek(int64_t position) override { return file_->Seek(position); }
  arrow::Result<int64_t> GetSize() override { return size_; }
  arrow::Result<int64_t> Read(int64_t bytes, void* out) override { return file_->Read(bytes, out); }
  arrow::Result<Bytes> Read(int64_t bytes) override {
    ARROW_ASSIGN_OR_RAISE(const int64_t position, Tell());
    return file_->Read(within(position, bytes));
  }

  arrow::Result<int64_t> ReadAt(int64_t position, int64_t bytes, void* out) override {
    return file_->ReadAt(position, bytes, out);
  }
  arrow::Result<int64_t> ReadAt(int64_t position, int64_t bytes, bool may_be_short, void* out) override {
    return file_->ReadAt(position, bytes, may_be_short, out);
  }
  arrow::Result<Bytes> ReadAt(int64_t position, int64_t bytes) override {
    return file_->ReadAt(position, within(position, bytes));
  }
  arrow::Result<Bytes> ReadAt(int64_t position, int64_t bytes, bool may_be_short) override {
    if (!may_be_short && within(position, bytes) < bytes) return arrow::Status::IOError("it ends before what it should hold");
    return ReadAt(position, bytes);
  }
  arrow::Future<Bytes> ReadAsync(const arrow::io::IOContext&, int64_t position, int64_t bytes) override {
    return arrow::Future<Bytes>::MakeFinished(ReadAt(position, bytes));
  }
  arrow::Future<Bytes> ReadAsync(const arrow::io::IOContext&, int64_t position, int64_t bytes, bool may_be_short) override {
    return arrow::Future<Bytes>::MakeFinished(ReadAt(position, bytes, may_be_short));
  }

 private:
  int64_t within(int64_t position, int64_t bytes) const { return std::min(bytes, std::max<int64_t>(size_ - position, 0)); }

  std::shared_ptr<arrow::io::ReadableFile> file_;
  int64_t size_;
};

}  // namespace sluice::columnar
