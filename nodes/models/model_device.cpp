#include "nodes/models/model_device.h"

#include "base/strings.h"
#include "models/cuda/device.h"

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

bool check_device(const std::string& device, const engine::ModelSpec& spec, Problems& problems) {
  const auto found = models::device_named(device);
  if (!found) {
    problems.push_back(problem_at(spec, "device-unknown", sluice::quoted(device) + " is no device",
                                  "device = \"cpu\", or \"cuda:N\" with a number N", Severity::kError));
    return false;
  }
  if (const auto missing = models::missing_device(*found)) {
    problems.push_back(problem_at(spec, "device-unavailable",
                                  "model '" + spec.name.text + "' is on " + device + ": " + missing->what,
                                  missing->help + ", or device = \"cpu\"", Severity::kWarning));
  }
  return true;
}

}  // namespace sluice::nodes
