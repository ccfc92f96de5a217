#include "nodes/models/model_device.h"

#include <vector>

#include "base/text/strings.h"
#include "models/cuda/device.h"
#include "models/cuda/driver.h"

namespace sluice::nodes {
namespace {

Problem problem_at(const engine::ModelSpec& spec, const char* kind, std::string message, std::string help, Severity severity) {
  const engine::Entry* written = spec.params.find("device");
  return {.kind = kind,
          .where = written != nullptr ? written->value.where : spec.params.where,
          .message = std::move(message),
          .caret = {},
          .notes = {},
          .help = std::move(help),
          .severity = severity};
}

}  // namespace

bool check_device(const std::string& device, const engine::ModelSpec& spec, const engine::KnownNames& known, Problems& problems) {
  if (device == "cpu") return true;
  const auto name = device_name(device);
  const engine::DeviceKind* const kind = name ? known.find_device_kind(name->kind) : nullptr;
  if (kind == nullptr) {
    std::vector<std::string> names;
    for (const std::string& one : known.device_names()) names.push_back(sluice::quoted(one));
    problems.push_back(problem_at(spec, "device-unknown", sluice::quoted(device) + " is no device",
                                  "device = \"cpu\", or " + join(names, " or ") + " with a number N", Severity::kError));
    return false;
  }
  if (const auto missing = kind->missing(name->number)) {
    problems.push_back(problem_at(spec, "device-unavailable",
                                  "model '" + spec.name.text + "' is on " + device + ": " + missing->what,
                                  missing->help + ", or device = \"cpu\"", Severity::kWarning));
  }
  return true;
}

engine::DeviceKind cuda_devices() {
  return {.name = "cuda", .missing = models::missing_gpu, .memory_bytes = models::memory_of_gpu, .use = models::use_cuda};
}

}  // namespace sluice::nodes
