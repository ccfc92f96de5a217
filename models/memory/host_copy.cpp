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

void HostCopy::copy(const std::vector<at::Tensor>& parts) {
  if (!tensor_.defined()) allocate();
  int64_t next = 0;
  for (const at::Tensor& part : parts) {
    copy(part, next);
    next += part.numel();
  }
  SLUICE_CHECK(next == floats_, "another buffer");
}

void HostCopy::copy(const at::Tensor& part, int64_t to) {
  SLUICE_CHECK(to + part.numel() <= floats_ && part.scalar_type() == at::kFloat && part.is_contiguous(), "another buffer");
  if (!part.is_cpu()) {
    const at::NoGradGuard no_gradient;
    tensor_.narrow(0, to, part.numel()).copy_(part);
    return;
  }
  const auto* source = part.const_data_ptr<float>();
  auto* target = tensor_.mutable_data_ptr<float>() + to;
  parallel_ranges(part.numel(), kGrain, [&](int64_t begin, int64_t end) {
    std::memcpy(target + begin, source + begin, static_cast<size_t>(end - begin) * sizeof(float));
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
