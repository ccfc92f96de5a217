#pragma once

#include <c10/core/Device.h>

#include <optional>
#include <string_view>

namespace sluice::models {

/// The device called `name`: "cpu", "cuda:N" with a number N below 128, or the same of a back end that a plugin has registered
/// with LibTorch under a name of its own (PrivateUse1). Nothing for any other text.
std::optional<at::Device> device_named(std::string_view name);

}  // namespace sluice::models
