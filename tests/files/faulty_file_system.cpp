#include "tests/files/faulty_file_system.h"

#include <fcntl.h>

#include <cerrno>

namespace sluice {
namespace fs = std::filesystem;

bool FaultyFileSystem::fails(int64_t number, Need need) {
  using enum Fault::Kind;
  const bool fails = (fault_.kind == kFails && number == fault_.at) || (fault_.kind == kFailsForGood && number >= fault_.at) ||
                     (fault_.kind == kDiskIsFull && number >= fault_.at && need == Need::kSpace);
  if (fails) struck_ = true;
  return fails;
}

int FaultyFileSystem::with_fault(Need need, const auto& operation) {
  if (!fails(operations_++, need)) return operation();
  errno = fault_.error;
  return -1;
}

int FaultyFileSystem::open(const fs::path& path, int flags) {
  return with_fault((flags & O_CREAT) != 0 ? Need::kSpace : Need::kNoSpace, [&] { return files_.open(path, flags); });
}

ssize_t FaultyFileSystem::write(int descriptor, const void* bytes, size_t size) {
  using enum Fault::Kind;
  const int64_t number = operations_++;
  const bool is_it = number == fault_.at;
  if (is_it && size > 1 && (fault_.kind == kShortWrite || fault_.kind == kDiskIsFull)) {
    struck_ = true;
    return files_.write(descriptor, bytes, size / 2);
  }
  if (!fails(number, Need::kSpace)) return files_.write(descriptor, bytes, size);
  errno = fault_.error;
  return -1;
}

int FaultyFileSystem::truncate(int descriptor, off_t size) {
  return with_fault(Need::kNoSpace, [&] { return files_.truncate(descriptor, size); });
}

int FaultyFileSystem::sync(int descriptor) {
  // A disk that fills up late says so here: the bytes had no place yet when they were written.
  return with_fault(Need::kSpace, [&] { return files_.sync(descriptor); });
}

int FaultyFileSystem::close(int descriptor) {
  const int result = files_.close(descriptor);
  return with_fault(Need::kNoSpace, [&] { return result; });
}

int FaultyFileSystem::rename(const fs::path& from, const fs::path& to) {
  return with_fault(Need::kSpace, [&] { return files_.rename(from, to); });
}

int FaultyFileSystem::exchange(const fs::path& one, const fs::path& other) {
  return with_fault(Need::kSpace, [&] { return files_.exchange(one, other); });
}

int FaultyFileSystem::make_folder(const fs::path& path) {
  return with_fault(Need::kSpace, [&] { return files_.make_folder(path); });
}

int FaultyFileSystem::make_link(const fs::path& target, const fs::path& path) {
  return with_fault(Need::kSpace, [&] { return files_.make_link(target, path); });
}

int FaultyFileSystem::remove_file(const fs::path& path) {
  return with_fault(Need::kNoSpace, [&] { return files_.remove_file(path); });
}

int FaultyFileSystem::remove_folder(const fs::path& path) {
  return with_fault(Need::kNoSpace, [&] { return files_.remove_folder(path); });
}

}  // namespace sluice
