#pragma once

#include <string>
#include <string_view>

namespace sluice::cli {

/// RFC 4648, with padding.
std::string base64(std::string_view bytes);

}  // namespace sluice::cli
