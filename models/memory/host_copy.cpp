#include "models/memory/host_copy.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <sys/mman.h>

#include <cstring>
#include <new>

#include "base/error.h"
#include "models/kernels/parallel.h"

namespace sluice::models {
namespace {

constexpr int64_t kGrain = 1 << 19;  // floats: one large page, so that no two threads wait for the same

}  // namespace

void HostCopy::prepare() {
  if (tensor_.defined()) return;
  allocate();
  std::memset(tensor_.mutable_data_ptr<float>(), 0, static_cast<size_t>(floats_) * sizeof(float));
}

void HostCopy::copy(const at::Tensor& buffer) {
  SLUICE_CHECK(buffer.numel() == floats_ && buffer.scalar_type() == at::kFloat && buffer.is_contiguous(), "another buffer");
  if (!tensor_.defined()) allocate();
  if (!buffer.is_cpu()) {
    const at::NoGradGuard no_gradient;
    tensor_.copy_(buffer);
    return;
  }
  const auto* from = buffer.const_data_ptr<float>();
  auto* to = tensor_.mutable_data_ptr<float>();
  parallel_ranges(floats_, kGrain, [&](int64_t begin, int64_t end) {
    std::memcpy(to + begin, from + begin, static_cast<size_t>(end - begin) * sizeof(float));
  });
}

// Nothing can be mapped of no floats.
void HostCopy::allocate() {
  if (floats_ == 0) {
    tensor_ = at::empty({0}, at::kFloat);
    return;
  }
  const size_t bytes = static_cast<size_t>(floats_) * sizeof(float);
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  ::madvise(memory, bytes, MADV_HUGEPAGE);  // a wish: small pages do as well
  tensor_ = at::from_blob(
      memory, {floats_}, [bytes](void* mapped) { ::munmap(mapped, bytes); }, at::TensorOptions(at::kFloat));
  bytes_ = static_cast<int64_t>(bytes);
}

}  // namespace sluice::models
