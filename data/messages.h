#pragma once

#include <optional>
#include <string>

#include "base/json/json.h"

namespace sluice::data {

/// What keeps `value` from being a conversation: a list of at least one {"role": string, "content": ...}, where the content is a
/// string, null, missing or a list of parts; other keys (name, tool_calls, ...) are for the chat template. A message may also be
/// ShareGPT's {"from": "human", "value": string}. Nothing if it is one.
std::optional<std::string> fault_of_messages(const Json& value);

/// A conversation, with role and content in place of ShareGPT's from and value: human is the user, gpt the assistant.
Json with_roles(const Json& messages);

/// True if both are the same, in whatever order the members of objects are written.
bool same_json(const Json& a, const Json& b);

}  // namespace sluice::data
