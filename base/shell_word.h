#pragma once

#include <string>
#include <string_view>

namespace sluice {

/// `text` as one word of a command that a person copies into a shell: as it is where a shell takes it so, else in single quotes.
std::string shell_word(std::string_view text);

}  // namespace sluice
