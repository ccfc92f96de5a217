#include "base/log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

namespace sluice {
namespace {

spdlog::logger& logger() {
  static const std::shared_ptr<spdlog::logger> instance = [] {
    auto made = std::make_shared<spdlog::logger>("sluice", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    made->set_pattern("%H:%M:%S.%e %l: %v");
    made->set_level(spdlog::level::info);
    return made;
  }();
  return *instance;
}

}  // namespace

void log_debug(const std::string& message) { logger().debug(message); }
void log_info(const std::string& message) { logger().info(message); }
void log_warning(const std::string& message) { logger().warn(message); }

void set_log_level(LogLevel level) {
  logger().set_level(level == LogLevel::kDebug  ? spdlog::level::debug
                     : level == LogLevel::kInfo ? spdlog::level::info
                                                : spdlog::level::warn);
}

}  // namespace sluice
