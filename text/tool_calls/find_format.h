#pragma once

#include <optional>

#include "text/chat/chat_template.h"
#include "text/tool_calls/tool_call_format.h"

namespace sluice::text {

/// How a chat template writes tool calls, found by rendering some and looking for what is in them. Nothing: it writes none, or
/// some that have neither an object with name and arguments nor a name before its arguments. `variables`: what else the template
/// is told.
std::optional<ToolCallFormat> find_tool_call_format(const ChatTemplate& chat, const Json& variables = Json::object());

/// What the template writes around the thinking of a turn, found in the same way; the usual marks where it shows none.
ThinkingMarks find_thinking_marks(const ChatTemplate& chat, const Json& variables = Json::object());

}  // namespace sluice::text
