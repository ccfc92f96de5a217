#include "base/files/mapped_file.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/files/file_calls.h"

namespace sluice {
namespace fs = std::filesystem;

namespace {

constexpr size_t kPieceBytes = size_t{1} << 20;

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
  end -= end % page;  // a page that goes on after `end` may be needed next
  // It only advises: where the system does not follow, the pages stay until it needs them.
  if (end > begin) ::madvise(const_cast<std::byte*>(data_) + begin, end - begin, MADV_DONTNEED);
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

}  // namespace sluice
