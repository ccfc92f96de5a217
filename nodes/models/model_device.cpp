#include "nodes/models/model_device.h"

#include <string>
#include <vector>

#include "base/text/strings.h"
#include "models/cuda/device.h"
#include "models/cuda/driver.h"

namespace sluice::nodes {

bool check_device(const std::string& device, const engine::KnownNames& known, ModelProblems& problems) {
  if (device == "cpu") return true;
  const auto name = device_name(device);
  const engine::DeviceKind* const kind = name ? known.find_device_kind(name->kind) : nullptr;
  if (kind == nullptr) {
    std::vector<std::string> names;
    for (const std::string& one : known.device_names()) names.push_back(sluice::quoted(one));
    problems.report("device-unknown", "device", sluice::quoted(device) + " is no device",
                    "device = \"cpu\", or " + join(names, " or ") + " with a number N");
    return false;
  }
  if (const auto missing = kind->missing(name->number)) {
    problems.report("device-unavailable", "device", problems.model() + " is on " + device + ": " + missing->what,
                    missing->help + ", or device = \"cpu\"", Severity::kWarning);
  }
  return true;
}

engine::DeviceKind cuda_devices() {
  return {.name = "cuda", .missing = models::missing_gpu, .memory_bytes = models::memory_of_gpu, .use = models::use_cuda};
}

}  // namespace sluice::nodes
