#include "models/memory/sparse_buffer.h"

#include <ATen/ops/from_blob.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <new>
#include <vector>

#include "base/error.h"

namespace sluice::models {
namespace {

constexpr size_t kLargePagesFrom = size_t{64} << 20;  // some megabytes more that are held are few then

}  // namespace

SparseBuffer::SparseBuffer(int64_t floats) {
  const size_t bytes = std::max<size_t>(1, static_cast<size_t>(floats) * sizeof(float));
  void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  if (bytes >= kLargePagesFrom) ::madvise(memory, bytes, MADV_HUGEPAGE);  // a wish: small pages do as well
  tensor_ = at::from_blob(
      memory, {floats}, [bytes](void* mapped) { ::munmap(mapped, bytes); }, at::TensorOptions(at::kFloat));
}

int64_t SparseBuffer::resident_bytes() const {
  const int64_t page = ::sysconf(_SC_PAGESIZE), bytes = static_cast<int64_t>(tensor_.nbytes());
  std::vector<unsigned char> pages(static_cast<size_t>((bytes + page - 1) / page));
  if (bytes == 0 || ::mincore(const_cast<void*>(tensor_.const_data_ptr()), static_cast<size_t>(bytes), pages.data()) != 0)
    return 0;
  return page * std::ranges::count_if(pages, [](unsigned char of) { return (of & 1) != 0; });
}

void SparseBuffer::give_back(int64_t begin, int64_t end) {
  const int64_t page = ::sysconf(_SC_PAGESIZE) / static_cast<int64_t>(sizeof(float));
  const int64_t first = (begin + page - 1) / page * page, last = end / page * page;
  if (first >= last) return;
  const bool is_given =
      ::madvise(tensor_.mutable_data_ptr<float>() + first, static_cast<size_t>(last - first) * sizeof(float), MADV_DONTNEED) == 0;
  SLUICE_CHECK(is_given, "pages cannot be given back");
}

}  // namespace sluice::models
