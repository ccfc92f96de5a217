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

// Of the pages that floats [begin, end) touch, those that are there. Nothing: the system does not say.
std::optional<int64_t> SparseBuffer::pages_held(int64_t begin, int64_t end) const {
  const int64_t page = ::sysconf(_SC_PAGESIZE) / static_cast<int64_t>(sizeof(float)), first = begin / page * page;
  if (begin >= end) return 0;
  std::vector<unsigned char> pages(static_cast<size_t>((end - first + page - 1) / page));
  auto* const memory = const_cast<float*>(tensor_.const_data_ptr<float>()) + first;
  if (::mincore(memory, static_cast<size_t>(end - first) * sizeof(float), pages.data()) != 0) return std::nullopt;
  return std::ranges::count_if(pages, [](unsigned char of) { return (of & 1) != 0; });
}

int64_t SparseBuffer::resident_bytes() const { return ::sysconf(_SC_PAGESIZE) * pages_held(0, tensor_.numel()).value_or(0); }

bool SparseBuffer::holds(int64_t begin, int64_t end) const { return pages_held(begin, end).value_or(1) > 0; }

void SparseBuffer::give_back(int64_t begin, int64_t end) {
  const int64_t page = ::sysconf(_SC_PAGESIZE) / static_cast<int64_t>(sizeof(float));
  const int64_t first = (begin + page - 1) / page * page, last = end / page * page;
  if (first >= last) return;
  const bool is_given =
      ::madvise(tensor_.mutable_data_ptr<float>() + first, static_cast<size_t>(last - first) * sizeof(float), MADV_DONTNEED) == 0;
  SLUICE_CHECK(is_given, "pages cannot be given back");
}

}  // namespace sluice::models
