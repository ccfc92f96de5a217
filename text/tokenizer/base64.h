#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace sluice::text {

// RFC 4648, section 4, with padding.

std::string to_base64(std::string_view bytes);

/// The bytes that `text` spells, or nothing if it is no base64.
std::optional<std::string> from_base64(std::string_view text);

}  // namespace sluice::text
