#pragma once

#include <optional>

#include "text/chat_template.h"
#include "text/tool_calls/tool_call_format.h"

namespace sluice::text {

/// How a chat template writes tool calls, found by rendering one and looking for it. Nothing: it writes none, or none that is JSON
/// with a name and arguments. `variables`: what else the template is told.
std::optional<ToolCallFormat> find_tool_call_format(const ChatTemplate& chat, const Json& variables = Json::object());

}  // namespace sluice::text
