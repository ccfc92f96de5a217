#pragma once

#include <optional>
#include <string>

#include "base/json.h"

namespace sluice::data {

/// What keeps `value` from being a conversation: a list of at least one {"role": string, "content": ...}, where the content is a
/// string, null, missing or a list of parts; other keys (name, tool_calls, ...) are for the chat template. Nothing if it is one.
std::optional<std::string> fault_of_messages(const Json& value);

/// True if both are the same, in whatever order the members of objects are written.
bool same_json(const Json& a, const Json& b);

}  // namespace sluice::data
