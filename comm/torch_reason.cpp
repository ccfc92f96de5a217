#include "comm/torch_reason.h"

#include <c10/util/Exception.h>

#include "base/error.h"
#include "base/text/strings.h"

namespace sluice::comm {

std::string torch_reason(const std::exception& error) {
  if (const auto* torch = dynamic_cast<const c10::Error*>(&error)) return torch->what_without_backtrace();
  std::string reason = message_of(error);
  const bool has_place = reason.starts_with("[/") || reason.starts_with("[enforce fail at ");
  const size_t place_end = has_place ? reason.find("] ") : std::string::npos;
  return place_end == std::string::npos ? reason : std::string(trim(reason.substr(place_end + 2)));
}

}  // namespace sluice::comm
