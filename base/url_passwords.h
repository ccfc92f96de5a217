#pragma once

#include <string>
#include <string_view>

namespace sluice {

/// `text` with ://***@host for each ://user:secret@host: of what may be handed on, such as a report or a model card.
std::string without_passwords(std::string_view text);

}  // namespace sluice
