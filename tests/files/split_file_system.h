#pragma once

#include <filesystem>
#include <mutex>
#include <set>
#include <string>

#include "base/files/file_system.h"

namespace sluice {

/// One file system for what has a folder or file on its path whose name begins so, another for the rest: the disk of the
/// checkpoints can be full while that of the run folder is not. Both outlive it. A rename or exchange goes by its second path.
/// Thread-safe.
class SplitFileSystem final : public FileSystem {
 public:
  SplitFileSystem(std::string name, FileSystem& inside, FileSystem& outside)
      : name_(std::move(name)), inside_(inside), outside_(outside) {}

  int open(const std::filesystem::path& path, int flags) override {
    const int descriptor = of(path).open(path, flags);
    const std::lock_guard lock(mutex_);
    if (descriptor >= 0 && is_inside(path)) opened_inside_.insert(descriptor);
    return descriptor;
  }
  ssize_t write(int descriptor, const void* bytes, size_t size) override { return of(descriptor).write(descriptor, bytes, size); }
  int truncate(int descriptor, off_t size) override { return of(descriptor).truncate(descriptor, size); }
  int sync(int descriptor) override { return of(descriptor).sync(descriptor); }
  int close(int descriptor) override {
    FileSystem& files = of(descriptor);
    {
      const std::lock_guard lock(mutex_);  // before: its number may be another file's right after
      opened_inside_.erase(descriptor);
    }
    return files.close(descriptor);
  }
  int rename(const std::filesystem::path& from, const std::filesystem::path& to) override { return of(to).rename(from, to); }
  int exchange(const std::filesystem::path& one, const std::filesystem::path& other) override {
    return of(other).exchange(one, other);
  }
  int make_folder(const std::filesystem::path& path) override { return of(path).make_folder(path); }
  int make_link(const std::filesystem::path& target, const std::filesystem::path& path) override {
    return of(path).make_link(target, path);
  }
  int remove_file(const std::filesystem::path& path) override { return of(path).remove_file(path); }
  int remove_folder(const std::filesystem::path& path) override { return of(path).remove_folder(path); }

 private:
  bool is_inside(const std::filesystem::path& path) const {
    for (const std::filesystem::path& part : path) {
      if (part.string().starts_with(name_)) return true;
    }
    return false;
  }
  FileSystem& of(const std::filesystem::path& path) { return is_inside(path) ? inside_ : outside_; }
  FileSystem& of(int descriptor) {
    const std::lock_guard lock(mutex_);
    return opened_inside_.contains(descriptor) ? inside_ : outside_;
  }

  const std::string name_;
  FileSystem& inside_;
  FileSystem& outside_;
  std::mutex mutex_;
  std::set<int> opened_inside_;
};

}  // namespace sluice
