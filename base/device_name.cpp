#include "base/device_name.h"

#include <algorithm>

namespace sluice {

std::optional<DeviceName> device_name(std::string_view text) {
  constexpr int kNumbers = 128;
  const size_t colon = text.find(':');
  if (colon == 0 || colon == std::string_view::npos || text.substr(0, colon) == "cpu") return std::nullopt;
  const std::string_view digits = text.substr(colon + 1);
  const bool is_number = std::ranges::all_of(digits, [](char c) { return c >= '0' && c <= '9'; });
  if (digits.empty() || digits.size() > 3 || !is_number) return std::nullopt;
  int number = 0;
  for (const char digit : digits) number = number * 10 + (digit - '0');
  if (number >= kNumbers) return std::nullopt;
  return DeviceName{.kind = std::string(text.substr(0, colon)), .number = number};
}

}  // namespace sluice
