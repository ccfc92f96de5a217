#include "models/portable/abilities.h"

#include <ATen/DeviceAccelerator.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty.h>
#include <c10/core/TensorOptions.h>

#include <algorithm>

#include "models/cuda/own_kernels.h"
#include "models/cuda/paged_decode_attention.h"

namespace sluice::models::portable {
namespace {

bool has_kernel(at::Device device, const c10::OperatorHandle& op) {
  return op.hasKernelForDispatchKey(c10::computeDispatchKey(std::nullopt, std::nullopt, device));
}

bool has_kernel(at::Device device, const char* name, const char* overload) {
  const auto op = c10::Dispatcher::singleton().findSchema({name, overload});
  return op && has_kernel(device, *op);
}

template <class T>
at::Tensor numbers_of(at::Device device, const std::vector<T>& numbers, at::ScalarType type) {
  const at::Tensor host = empty_for(device, {static_cast<int64_t>(numbers.size())}, type);
  std::ranges::copy(numbers, host.mutable_data_ptr<T>());
  return copied_to(device, host);
}

}  // namespace

bool has_wide_products(at::Device device) { return has_kernel(device, "aten::mm", "dtype"); }

bool has_wide_additions(at::Device device) { return has_kernel(device, "aten::addmm", "dtype_out"); }

bool has_flash_attention(at::Device device) { return has_kernel(device, "aten::_flash_attention_forward", ""); }

bool has_paged_decode_attention(at::Device device, int64_t head_dim) {
  return head_dim <= kMostHeadDim && head_dim % kOfHeadDim == 0 && has_kernel(device, paged_decode_attention_operator());
}

const OwnKernels* own_kernels_of(at::Device device) { return device.is_cuda() ? own_kernels() : nullptr; }

bool has_own_operator(at::Device device, const char* name) { return has_kernel(device, name, ""); }

bool works_apart(at::Device device) { return at::accelerator::isAccelerator(device.type()); }

at::Tensor numbers_on(at::Device device, const std::vector<int64_t>& numbers) { return numbers_of(device, numbers, at::kLong); }

at::Tensor numbers_on(at::Device device, const std::vector<int32_t>& numbers) { return numbers_of(device, numbers, at::kInt); }

at::Tensor numbers_on(at::Device device, const std::vector<double>& numbers) { return numbers_of(device, numbers, at::kDouble); }

at::Tensor empty_for(at::Device device, at::IntArrayRef shape, at::ScalarType type) {
  return at::empty(shape, at::TensorOptions(type).pinned_memory(works_apart(device)));
}

at::Tensor copied_to(at::Device device, const at::Tensor& host) { return host.to(device, /*non_blocking=*/true); }

}  // namespace sluice::models::portable
