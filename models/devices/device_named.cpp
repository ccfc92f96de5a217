#include "models/devices/device_named.h"

#include <c10/core/DeviceType.h>

#include "base/device_name.h"

namespace sluice::models {

std::optional<at::Device> device_named(std::string_view name) {
  if (name == "cpu") return at::Device(at::kCPU);
  const auto parts = device_name(name);
  if (!parts) return std::nullopt;
  const auto number = static_cast<at::DeviceIndex>(parts->number);
  if (parts->kind == "cuda") return at::Device(at::kCUDA, number);
  if (c10::is_privateuse1_backend_registered() && parts->kind == c10::get_privateuse1_backend())
    return at::Device(at::kPrivateUse1, number);
  return std::nullopt;
}

}  // namespace sluice::models
