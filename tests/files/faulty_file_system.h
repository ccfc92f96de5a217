#pragma once

#include <atomic>
#include <cstdint>

#include "base/files/file_system.h"

namespace sluice {

/// What goes wrong with the operation number `at`, counted from 0, or from it on.
struct Fault {
  enum class Kind {
    kNone,
    kFails,         // that one, with `error`, and has no effect. EINTR: it succeeds when it is made again
    kFailsForGood,  // likewise each that follows: the power is gone, the disk is off
    kDiskIsFull,    // from then on, what needs space fails with `error`: the first write takes half of its bytes before
    kShortWrite,    // if it is a write it takes half of its bytes
  };

  Kind kind = Kind::kNone;
  int64_t at = 0;
  int error = 0;
};

/// Another file system, which outlives it, with a fault. Descriptors are closed also when close() fails. Thread-safe.
class FaultyFileSystem final : public FileSystem {
 public:
  explicit FaultyFileSystem(Fault fault, FileSystem& files = disk()) : fault_(fault), files_(files) {}

  /// How many operations there were, those that failed included.
  int64_t operations() const { return operations_; }

  /// Whether the fault has shown: an operation failed or a write was short.
  bool struck() const { return struck_; }

  int open(const std::filesystem::path& path, int flags) override;
  ssize_t write(int descriptor, const void* bytes, size_t size) override;
  int truncate(int descriptor, off_t size) override;
  int sync(int descriptor) override;
  int close(int descriptor) override;
  int rename(const std::filesystem::path& from, const std::filesystem::path& to) override;
  int exchange(const std::filesystem::path& one, const std::filesystem::path& other) override;
  int make_folder(const std::filesystem::path& path) override;
  int make_link(const std::filesystem::path& target, const std::filesystem::path& path) override;
  int remove_file(const std::filesystem::path& path) override;
  int remove_folder(const std::filesystem::path& path) override;

 private:
  enum class Need { kSpace, kNoSpace };  // whether a full disk refuses it

  bool fails(int64_t number, Need need);
  int with_fault(Need need, const auto& operation);

  const Fault fault_;
  FileSystem& files_;
  std::atomic<int64_t> operations_ = 0;
  std::atomic<bool> struck_ = false;
};

}  // namespace sluice
