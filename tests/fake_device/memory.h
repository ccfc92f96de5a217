#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Allocator.h>

#include <cstdint>

namespace sluice::fake {

/// Memory of the devices. Each address is there twice: the one that tensors have, which no access is allowed to, and its twin,
/// which the work of streams reads and writes. Thread-safe.

/// Of the current device and stream of the calling thread. What is freed is used again on the same stream, at once.
c10::Allocator& device_allocator();

/// Memory of the host that work may read or write while the host goes on. What is freed is used again only when work lets go
/// of it.
c10::Allocator& pinned_allocator();
bool is_pinned(const void* address);

/// The twin of an address that device_allocator() gave, or of one within its block.
char* twin_of(const void* address);

/// Which device the address belongs to.
c10::DeviceIndex device_of(const void* address);

/// The block is used again on its own stream only after what is queued on this one now.
void note_use(const void* address, c10::Stream stream);

void set_memory_capacity(int64_t bytes);
int64_t live_memory();
int64_t take_memory_peak();  // since the last call

/// The same storage as a tensor of the host, for the work of a stream: a handle of the memory, not an owner. A tensor of the
/// host is itself.
at::Tensor host_view(const at::Tensor& tensor);

}  // namespace sluice::fake
