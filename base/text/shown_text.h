#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace sluice {

/// Text from outside as messages show it: in quotes, at most about `most` bytes of it ("..." after it where it is longer), and
/// without anything that a terminal obeys: control characters, marks that turn the direction of writing, and bytes that are not
/// UTF-8 are escaped.
std::string shown_text(std::string_view text, size_t most = 80);

}  // namespace sluice
