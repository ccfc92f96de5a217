#include "base/log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include "base/text/printable.h"

namespace sluice {
namespace {

spdlog::logger& logger() {
  static const std::shared_ptr<spdlog::logger> instance = [] {
    auto made = std::make_shared<spdlog::logger>("sluice", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    made->set_pattern("%H:%M:%S.%e %l: %v");
    return made;
  }();
  return *instance;
}

}  // namespace

// What a model has said, or a file, may be in it.
void log_warning(const std::string& message) { logger().warn(printable(message, Lines::kKept)); }

}  // namespace sluice
