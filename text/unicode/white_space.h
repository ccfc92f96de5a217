#pragma once

#include <cstddef>
#include <string_view>

namespace sluice::text {

/// Where the white space that ends at `end` begins, but not before `least`. Positions are bytes of well-formed UTF-8.
size_t white_space_begin(std::string_view text, size_t least, size_t end);

/// Where the white space that begins at `begin` ends.
size_t white_space_end(std::string_view text, size_t begin);

}  // namespace sluice::text
