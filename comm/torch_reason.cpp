#include "comm/torch_reason.h"

#include <c10/util/Exception.h>

#include "base/error.h"

namespace sluice::comm {

std::string torch_reason(const std::exception& error) {
  if (const auto* torch = dynamic_cast<const c10::Error*>(&error)) return torch->what_without_backtrace();
  std::string reason = message_of(error);
  const size_t place_end = reason.starts_with("[/") ? reason.find("] ") : std::string::npos;
  return place_end == std::string::npos ? reason : reason.substr(place_end + 2);
}

}  // namespace sluice::comm
