#include "models/devices/streams.h"

#include <ATen/DeviceAccelerator.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include "models/devices/device_named.h"

namespace sluice::models {
namespace {

// As LibTorch counts: the lower, the sooner.
constexpr int kUsualPriority = 0, kFirstPriority = -1;

bool has_streams(at::Device device) { return at::accelerator::isAccelerator(device.type()); }

c10::impl::VirtualGuardImpl back_end_of(at::Device device) { return c10::impl::VirtualGuardImpl(device.type()); }

}  // namespace

void use_own_streams(const std::vector<std::string>& devices, StreamOrder order) {
  for (const std::string& name : devices) {
    const at::Device device = device_named(name).value();
    if (!has_streams(device)) continue;
    const c10::impl::VirtualGuardImpl back_end = back_end_of(device);
    back_end.synchronizeDevice(device.index());
    back_end.exchangeStream(back_end.getNewStream(device, order == StreamOrder::kFirst ? kFirstPriority : kUsualPriority));
  }
}

void finish_work_on(at::Device device) {
  if (!has_streams(device)) return;
  const c10::impl::VirtualGuardImpl back_end = back_end_of(device);
  back_end.synchronizeStream(back_end.getStream(device));
}

void* current_stream_on(at::Device device) {
  return has_streams(device) ? back_end_of(device).getStream(device).native_handle() : nullptr;
}

}  // namespace sluice::models
