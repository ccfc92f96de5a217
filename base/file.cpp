#include "base/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "base/error.h"

namespace sluice {
namespace fs = std::filesystem;
namespace {

[[noreturn]] void fail(const std::string& action, const fs::path& path) {
  const int code = errno;
  std::string help;
  if (code == ENOSPC) help = "free space on that disk; files that were complete before are untouched";
  if (code == EACCES || code == EROFS) help = "choose a place you may write to, or change its rights";
  throw UserError("cannot " + action + " " + path.string() + ": " + std::strerror(code), help);
}

int open_for_reading(const fs::path& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) fail("read", path);
  struct stat status {};
  if (::fstat(descriptor, &status) == 0 && S_ISDIR(status.st_mode)) {
    ::close(descriptor);
    errno = EISDIR;
    fail("read", path);
  }
  return descriptor;
}

// Closes it at the end of its scope; errno stays what it was.
struct Descriptor {
  int value;
  ~Descriptor() {
    const int code = errno;
    ::close(value);
    errno = code;
  }
};

void sync_folder(const fs::path& folder) {
  const fs::path place = folder.empty() ? fs::path(".") : folder;
  const int descriptor = ::open(place.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) fail("open", place);
  const int result = ::fsync(descriptor);
  ::close(descriptor);
  if (result != 0 && errno != EINVAL) fail("write", place);  // EINVAL: a file system without folder syncs
}

void rename_or_fail(const fs::path& from, const fs::path& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) fail("rename " + from.string() + " to", to);
}

// Puts `finished` in the place of the folder `target`, and that one at `aside`. When it fails, `target` is where it was.
void swap_folders(const fs::path& finished, const fs::path& target, const fs::path& aside) {
  // In one step, so that a crash cannot come between two; not every file system can.
  if (::renameat2(AT_FDCWD, finished.c_str(), AT_FDCWD, target.c_str(), RENAME_EXCHANGE) == 0) {
    rename_or_fail(finished, aside);
    return;
  }
  if (errno != EINVAL && errno != ENOSYS) fail("rename " + finished.string() + " to", target);
  rename_or_fail(target, aside);
  try {
    rename_or_fail(finished, target);
  } catch (...) {
    std::error_code ignored;
    fs::rename(aside, target, ignored);
    throw;
  }
}

}  // namespace

std::string read_file(const fs::path& path) {
  const int descriptor = open_for_reading(path);
  std::string content;
  char buffer[1 << 16];
  ssize_t count = 0;
  while ((count = ::read(descriptor, buffer, sizeof buffer)) != 0) {
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      ::close(descriptor);
      fail("read", path);
    }
    content.append(buffer, static_cast<size_t>(count));
  }
  ::close(descriptor);
  return content;
}

OutputFile::OutputFile(const fs::path& path, Mode mode) : path_(path) {
  const int how = mode == Mode::kAppend ? O_APPEND : O_TRUNC;
  descriptor_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | how, 0644);
  if (descriptor_ < 0) fail("write", path);
}

OutputFile::~OutputFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void OutputFile::write(std::string_view bytes) {
  SLUICE_CHECK(descriptor_ >= 0, "write to a closed file");
  while (!bytes.empty()) {
    const ssize_t count = ::write(descriptor_, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail("write", path_);
    bytes.remove_prefix(static_cast<size_t>(count));
  }
}

void OutputFile::sync() {
  if (::fsync(descriptor_) != 0 && errno != EINVAL) fail("write", path_);
}

void OutputFile::close() {
  sync();
  const int descriptor = std::exchange(descriptor_, -1);
  if (::close(descriptor) != 0 && errno != EINTR) fail("write", path_);
}

void write_file_atomically(const fs::path& path, std::string_view content) {
  fs::path temporary = path;
  temporary += ".tmp";
  try {
    OutputFile file(temporary);
    file.write(content);
    file.close();
    rename_or_fail(temporary, path);
  } catch (...) {
    std::error_code ignored;
    fs::remove(temporary, ignored);
    throw;
  }
  sync_folder(path.parent_path());
}

void replace_file(const fs::path& path, std::string_view content) {
  fs::path temporary = path;
  temporary += ".tmp";
  {
    OutputFile file(temporary);
    file.write(content);
  }
  rename_or_fail(temporary, path);
}

void replace_path(const fs::path& finished, const fs::path& target) {
  std::error_code ignored;
  if (!fs::is_directory(target)) {
    rename_or_fail(finished, target);
    sync_folder(target.parent_path());
    return;
  }
  fs::path aside = target;
  aside += ".old";
  fs::remove_all(aside, ignored);
  swap_folders(finished, target, aside);
  sync_folder(target.parent_path());
  fs::remove_all(aside, ignored);
}

MappedFile::MappedFile(const fs::path& path) : MappedFile(Descriptor{open_for_reading(path)}.value, path) {}

MappedFile::MappedFile(int descriptor, const fs::path& name) {
  struct stat status {};
  if (::fstat(descriptor, &status) != 0) fail("read", name);
  size_ = static_cast<size_t>(status.st_size);
  if (size_ == 0) return;  // mmap refuses an empty file
  void* data = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, descriptor, 0);
  if (data == MAP_FAILED) fail("map", name);
  data_ = static_cast<const std::byte*>(data);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

void MappedFile::drop(size_t begin, size_t end) const {
  SLUICE_CHECK(begin <= end && end <= size_, "bytes outside of the file");
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  begin -= begin % page;
  end -= end % page;  // a page that goes on behind `end` may be needed next
  // It only advises: where the system does not follow, the pages stay until it needs them.
  if (end > begin) ::madvise(const_cast<std::byte*>(data_) + begin, end - begin, MADV_DONTNEED);
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

}  // namespace sluice
