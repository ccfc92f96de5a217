#pragma once

#include <string>

namespace sluice {

// What could steer a terminal is escaped (base/text/printable.h). Takes a finished string: spdlog's fmt and the fmt of the torch
// wheel do not mix in one file. Thread-safe; writes to stderr.
void log_warning(const std::string& message);

}  // namespace sluice
