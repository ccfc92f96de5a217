#include "models/memory/host_copy.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <new>

#include "base/error.h"
#include "models/kernels/parallel.h"

namespace sluice::models {
namespace {

constexpr int64_t kGrain = 1 << 19;  // floats: one large page, so that no two threads wait for the same

constexpr int64_t kFloatsOfAHalf = int64_t{4} << 20;  // of pinned memory: 16 MB

void copy_floats(const float* from, int64_t count, float* to) {
  parallel_ranges(count, kGrain, [&](int64_t begin, int64_t end) {
    std::memcpy(to + begin, from + begin, static_cast<size_t>(end - begin) * sizeof(float));
  });
}

// Of the pinned memory that a device copies to.
struct Half {
  explicit Half(at::Device device) : come(device.type()) {}

  void ask(const at::Tensor& part) {
    if (!memory.defined()) memory = at::empty({part.numel()}, at::TensorOptions(at::kFloat).pinned_memory(true));
    memory.narrow(0, 0, part.numel()).copy_(part, /*non_blocking=*/true);
    come.record(c10::impl::VirtualGuardImpl(part.device().type()).getStream(part.device()));
  }

  at::Tensor memory;
  c10::Event come;
  int64_t count = 0;
};

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
  if (!part.is_cpu()) return copy_from_device(part, to);
  copy_floats(part.const_data_ptr<float>(), part.numel(), tensor_.mutable_data_ptr<float>() + to);
}

// A copy to memory that is not pinned goes at a fraction of the link's rate. While one half comes the other is copied to its
// place.
void HostCopy::copy_from_device(const at::Tensor& part, int64_t to) {
  const at::NoGradGuard no_gradient;
  std::array<Half, 2> halves{Half(part.device()), Half(part.device())};
  int64_t next = 0;
  const auto ask = [&](Half& half) {
    half.count = std::min(kFloatsOfAHalf, part.numel() - next);
    if (half.count > 0) half.ask(part.narrow(0, next, half.count));
    next += half.count;
  };
  for (Half& half : halves) ask(half);
  for (int64_t done = 0; done < part.numel();) {
    for (Half& half : halves) {
      if (half.count == 0) continue;
      half.come.synchronize();
      copy_floats(half.memory.const_data_ptr<float>(), half.count, tensor_.mutable_data_ptr<float>() + to + done);
      done += half.count;
      ask(half);
    }
  }
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
