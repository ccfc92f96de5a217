#include "tests/fake_device/copies.h"

#include <ATen/EmptyTensor.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/DeviceGuard.h>
#include <torch/library.h>

#include <atomic>
#include <optional>
#include <utility>

#include "tests/fake_device/memory.h"
#include "tests/fake_device/operators.h"
#include "tests/fake_device/streams.h"

namespace sluice::fake {
namespace {

const c10::DispatchKeySet kKeys(c10::DispatchKey::PrivateUse1);

struct Counters {
  std::atomic<int64_t> pageable = 0, to_host = 0, bytes_to_host = 0;
};

Counters& copies() {
  static auto& all = *new Counters;
  return all;
}

at::Tensor empty(c10::SymIntArrayRef sizes, std::optional<at::ScalarType> dtype, std::optional<at::Layout>,
                 std::optional<at::Device> device, std::optional<bool>, std::optional<at::MemoryFormat> format) {
  const c10::OptionalDeviceGuard on_device(device);
  return at::detail::empty_generic(C10_AS_INTARRAYREF_SLOW(sizes), &device_allocator(), kKeys, c10::dtype_or_default(dtype),
                                   format);
}

at::Tensor empty_strided(c10::SymIntArrayRef sizes, c10::SymIntArrayRef strides, std::optional<at::ScalarType> dtype,
                         std::optional<at::Layout>, std::optional<at::Device> device, std::optional<bool>) {
  const c10::OptionalDeviceGuard on_device(device);
  return at::detail::empty_strided_generic(C10_AS_INTARRAYREF_SLOW(sizes), C10_AS_INTARRAYREF_SLOW(strides), &device_allocator(),
                                           kKeys, c10::dtype_or_default(dtype));
}

// Another size: what was in it is gone, and so is its memory where there is too little.
const at::Tensor& resize_(const at::Tensor& tensor, c10::SymIntArrayRef sizes, std::optional<at::MemoryFormat>) {
  const auto wanted = C10_AS_INTARRAYREF_SLOW(sizes);
  if (tensor.sizes() == wanted) return tensor;
  tensor.unsafeGetTensorImpl()->set_sizes_contiguous(wanted);
  const auto bytes = static_cast<size_t>(tensor.numel()) * tensor.element_size();
  const c10::Storage& storage = tensor.storage();
  if (bytes <= storage.nbytes()) return tensor;
  const c10::DeviceGuard on_device(tensor.device());
  storage.unsafeGetStorageImpl()->set_data_ptr_noswap(device_allocator().allocate(bytes));
  storage.unsafeGetStorageImpl()->set_nbytes(bytes);
  return tensor;
}

Event now_on(c10::Device device) {
  Stream& stream = stream_of(current_stream(device.index()));
  return {&stream, stream.last_queued()};
}

// From one device to the other: the streams of both wait for each other, as LibTorch has it.
void copy_across(const at::Tensor& from, const at::Tensor& to) {
  make_wait(stream_of(current_stream(from.device().index())), now_on(to.device()));
  queue_on(from.device(), [from = host_view(from), to = host_view(to)] { to.copy_(from); });
  make_wait(stream_of(current_stream(to.device().index())), now_on(from.device()));
}

at::Tensor copy_from(const at::Tensor& from, const at::Tensor& to, bool non_blocking) {
  if (to.numel() == 0) return to;
  if (from.is_privateuseone() && to.is_privateuseone() && from.device() != to.device()) {
    copy_across(from, to);
    return to;
  }
  const c10::Device device = from.is_privateuseone() ? from.device() : to.device();
  const at::Tensor& host = from.is_privateuseone() ? to : from;
  if (to.is_cpu()) ++copies().to_host, copies().bytes_to_host += static_cast<int64_t>(to.nbytes());
  const bool goes_on = !host.is_cpu() || (non_blocking && is_pinned(host.const_data_ptr()));
  // A tensor of the host stays until the copy is made, as LibTorch keeps what is pinned. One of the device is the stream's.
  queue_on(device, [from = host_view(from.detach()), to = host_view(to.detach())] { to.copy_(from); });
  if (goes_on) return to;
  if (from.is_cpu()) ++copies().pageable;
  wait_for_host(device);
  return to;
}

void record_stream(at::Tensor& tensor, c10::Stream stream) { note_use(tensor.const_data_ptr(), stream); }

}  // namespace

Counts take_copy_counts() {
  return {.pageable_copies = copies().pageable.exchange(0),
          .copies_to_host = copies().to_host.exchange(0),
          .bytes_to_host = copies().bytes_to_host.exchange(0)};
}

void add_copies(torch::Library& aten) {
  aten.impl("empty.memory_format", TORCH_FN(empty));
  aten.impl("empty_strided", TORCH_FN(empty_strided));
  aten.impl("resize_", TORCH_FN(resize_));
  aten.impl("_copy_from", TORCH_FN(copy_from));
  aten.impl("record_stream", TORCH_FN(record_stream));
  aten.impl("as_strided", TORCH_FN(at::native::as_strided_tensorimpl));
  aten.impl("view", TORCH_FN(at::native::view));
  aten.impl("unfold", TORCH_FN(at::native::unfold));
  aten.impl("_reshape_alias", TORCH_FN(at::native::_reshape_alias));
}

}  // namespace sluice::fake
