#pragma once

#include <string>
#include <string_view>

namespace sluice {

/// `text` as one word of a command that a person copies into a shell: as it is where a shell takes it so, else in single
/// quotes; with control characters or bytes that are not UTF-8 as $'...'.
std::string shell_word(std::string_view text);

}  // namespace sluice
