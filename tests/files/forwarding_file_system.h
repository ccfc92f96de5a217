#pragma once

#include <cerrno>

#include "base/files/file_system.h"

namespace sluice {

/// Passes everything on to another file system, which outlives it. Those that change something derive from it.
class ForwardingFileSystem : public FileSystem {
 public:
  explicit ForwardingFileSystem(FileSystem& to = disk()) : to_(to) {}

  int open(const std::filesystem::path& path, int flags) override { return to_.open(path, flags); }
  ssize_t write(int descriptor, const void* bytes, size_t size) override { return to_.write(descriptor, bytes, size); }
  int truncate(int descriptor, off_t size) override { return to_.truncate(descriptor, size); }
  int sync(int descriptor) override { return to_.sync(descriptor); }
  int close(int descriptor) override { return to_.close(descriptor); }
  int rename(const std::filesystem::path& from, const std::filesystem::path& to) override { return to_.rename(from, to); }
  int exchange(const std::filesystem::path& one, const std::filesystem::path& other) override { return to_.exchange(one, other); }
  int make_folder(const std::filesystem::path& path) override { return to_.make_folder(path); }
  int make_link(const std::filesystem::path& target, const std::filesystem::path& path) override {
    return to_.make_link(target, path);
  }
  int remove_file(const std::filesystem::path& path) override { return to_.remove_file(path); }
  int remove_folder(const std::filesystem::path& path) override { return to_.remove_folder(path); }

 private:
  FileSystem& to_;
};

/// The disk without its waits: nothing survives a power cut for sure, and tests are fast.
inline FileSystem& unsynced_disk() {
  class Unsynced final : public ForwardingFileSystem {
    int sync(int) override { return 0; }
  };
  static Unsynced files;  // without state
  return files;
}

/// A file system that cannot exchange two names in one step, as some over the network.
class FileSystemWithoutExchange final : public ForwardingFileSystem {
 public:
  using ForwardingFileSystem::ForwardingFileSystem;

  int exchange(const std::filesystem::path&, const std::filesystem::path&) override {
    errno = EINVAL;
    return -1;
  }
};

}  // namespace sluice
