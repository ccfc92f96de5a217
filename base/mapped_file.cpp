#include "base/mapped_file.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/error.h"
#include "base/file_calls.h"
#include "base/strings.h"

namespace sluice {
namespace fs = std::filesystem;

namespace {

constexpr size_t kPieceBytes = size_t{1} << 20;
constexpr off_t kLeastHollow = 256 << 20;  // bytes; what is smaller is read soon
constexpr int kMostStretches = 4096;       // of data that are looked at: more are not the work of a broken copy

// Of the file's bytes those that are on the disk, counted until they are an eighth of it. Where the file system does not tell
// holes from data, all are.
bool is_hollow(int descriptor, off_t size) {
  if (size < kLeastHollow) return false;
  off_t there = 0, data = 0, hole = 0;
  for (int stretch = 0; stretch < kMostStretches; ++stretch) {
    data = ::lseek(descriptor, hole, SEEK_DATA);
    if (data < 0) return errno == ENXIO && there < size / 8;  // no more data
    hole = ::lseek(descriptor, data, SEEK_HOLE);
    if (hole < 0) return false;
    there += hole - data;
    if (there >= size / 8) return false;
  }
  return false;
}

int open_whole(const fs::path& path) {
  const int descriptor = open_for_reading(path);
  struct stat status {};
  if (::fstat(descriptor, &status) != 0 || !is_hollow(descriptor, status.st_size)) return descriptor;
  ::close(descriptor);
  throw UserError("cannot read " + path.string() + ": almost nothing of its " + human_bytes(status.st_size) + " is on the disk",
                  "copy or download it again: the last time was broken off");
}

}  // namespace

MappedFile::MappedFile(const fs::path& path) : MappedFile(ScopedDescriptor(open_whole(path)).value(), path) {}

MappedFile::MappedFile(int descriptor, const fs::path& name) {
  struct stat status {};
  if (::fstat(descriptor, &status) != 0) fail_with_errno("read", name);
  size_ = static_cast<size_t>(status.st_size);
  if (size_ == 0) return;  // mmap refuses an empty file
  void* data = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, descriptor, 0);
  if (data == MAP_FAILED) fail_with_errno("map", name);
  data_ = static_cast<const std::byte*>(data);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

void MappedFile::for_each_piece(const std::function<void(std::string_view piece)>& visit) const {
  for (size_t begin = 0; begin < size_; begin += kPieceBytes) {
    const size_t end = std::min(begin + kPieceBytes, size_);
    visit({reinterpret_cast<const char*>(data_) + begin, end - begin});
    drop(begin, end);
  }
}

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
