#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace sluice::models {
struct OwnKernels;
}

namespace sluice::models::portable {

/// What a device can do beside LibTorch's operators for every device. LibTorch is asked, not the name of the device: it can do
/// what has a kernel for it. From any thread.

/// aten::mm of narrow matrices with a wide result.
bool has_wide_products(at::Device device);

/// aten::addmm of narrow matrices, added to a wide sum.
bool has_wide_additions(at::Device device);

/// aten::_flash_attention_forward over ragged samples.
bool has_flash_attention(at::Device device);

/// Attention of one new token over keys and values in blocks (models/cuda/paged_decode_attention.h), of heads of this size.
bool has_paged_decode_attention(at::Device device, int64_t head_dim);

/// Our kernels for the device, those of models/cuda/own_kernels.h on a GPU; null: it has none, or they were not built.
const OwnKernels* own_kernels_of(at::Device device);

/// An operator of ours by its name, "sluice::gated" for one (models/cuda/training_operators.h).
bool has_own_operator(at::Device device, const char* name);

/// The host goes on while the device works: what it copies there may lie in pinned memory, and a copy from any other makes it
/// wait.
bool works_apart(at::Device device);

/// Numbers of the host, [n], on the device. Through pinned memory where the device works apart, so that the host does not wait.
at::Tensor numbers_on(at::Device device, const std::vector<int64_t>& numbers);
at::Tensor numbers_on(at::Device device, const std::vector<int32_t>& numbers);
at::Tensor numbers_on(at::Device device, const std::vector<double>& numbers);

/// Memory of the host that is copied to `device` while the host goes on, if it can be; by copied_to() then.
at::Tensor empty_for(at::Device device, at::IntArrayRef shape, at::ScalarType type);
at::Tensor copied_to(at::Device device, const at::Tensor& host);

}  // namespace sluice::models::portable
