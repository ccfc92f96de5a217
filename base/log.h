#pragma once

#include <string>

namespace sluice {

// Takes finished strings: spdlog's fmt and the fmt of the torch wheel do not mix in one file. Thread-safe; writes to stderr.
void log_debug(const std::string& message);
void log_info(const std::string& message);
void log_warning(const std::string& message);

enum class LogLevel { kDebug, kInfo, kWarning };
void set_log_level(LogLevel level);

}  // namespace sluice
