#pragma once

#include <string>
#include <string_view>

namespace sluice {

/// `text` with ://***@host for each ://user:secret@host: of what may be handed on, such as a report or a model card.
std::string without_passwords(std::string_view text);

/// One url as a message names it: "http://***@host/score?...". A query may hold a key, so that there is one is all that is said
/// of it. Of a text that is no url, what is in front of its last @ is hidden.
std::string shown_url(std::string_view url);

}  // namespace sluice
