#include "base/files/open_file.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>

#include "base/error.h"
#include "base/files/file_calls.h"
#include "base/text/strings.h"

namespace sluice {
namespace fs = std::filesystem;

OpenFile::OpenFile(const fs::path& path) : OpenFile(ScopedDescriptor(open_whole(path)).value(), path) {}

OpenFile::OpenFile(int descriptor, fs::path path) : path_(std::move(path)) {
  struct stat status {};
  if (::fstat(descriptor, &status) != 0) fail_with_errno("read", path_);
  size_ = static_cast<uint64_t>(status.st_size);
  descriptor_ = ::fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
  if (descriptor_ < 0) fail_with_errno("read", path_);
  keep_room_beside(descriptor_);
}

OpenFile::~OpenFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

OpenFile::OpenFile(OpenFile&& other) noexcept
    : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)), size_(std::exchange(other.size_, 0)) {}

void OpenFile::read(uint64_t begin, std::span<char> into) const {
  SLUICE_CHECK(begin <= size_ && into.size() <= size_ - begin, "bytes outside of the file");
  while (!into.empty()) {
    const ssize_t count =
        uninterrupted([&] { return ::pread(descriptor_, into.data(), into.size(), static_cast<off_t>(begin)); });
    if (count < 0) fail_with_errno("read", path_);
    if (count == 0) fail_cut_short();
    begin += static_cast<uint64_t>(count);
    into = into.subspan(static_cast<size_t>(count));
  }
}

std::string OpenFile::read(uint64_t begin, size_t length) const {
  std::string bytes(length, '\0');
  read(begin, std::span(bytes.data(), bytes.size()));
  return bytes;
}

void OpenFile::fail_cut_short() const {
  struct stat status {};
  const int64_t left = ::fstat(descriptor_, &status) == 0 ? static_cast<int64_t>(status.st_size) : 0;
  throw UserError(path_.string() + " has been cut short while it is being read: " + plural(left, "byte") + ", " +
                      std::to_string(size_) + " when it was opened",
                  kBringFileBack);
}

void keep_room_beside(int descriptor) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= limit.rlim_max) return;
  // The system gives the lowest number that is free: so many others are open, or more.
  if (static_cast<rlim_t>(descriptor) < limit.rlim_cur / 2) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace sluice
