#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/tool_calls/tool_call.h"

namespace sluice::text {

/// How a model writes tool calls: JSON between two marks, or JSON alone.
///
///   hermes   <tool_call>{"name": "add", "arguments": {"a": 1}}</tool_call>      Hermes, Qwen
///   mistral  [TOOL_CALLS] [{"name": "add", "arguments": {"a": 1}}]              Mistral
///   llama3   {"name": "add", "parameters": {"a": 1}}                            Llama 3, perhaps behind <|python_tag|>
///   openai   [{"name": "add", "arguments": {"a": 1}}]                           a call, or a list of them, as JSON
///
/// Each call, or pair of marks, may be an object or a list of objects, and an object may hold its own under "function". Arguments
/// may be an object or the text of one. A value: const use from many threads.
struct ToolCallFormat {
  std::string open;   // before a call; empty: a turn that is JSON as a whole is one
  std::string close;  // behind it; empty: it ends with the turn
  std::string name_key = "name";
  std::string arguments_key = "arguments";

  bool operator==(const ToolCallFormat&) const = default;

  /// Of a turn as it was sampled, without the token that ended it, special tokens among its text. Thinking is what stands before
  /// the first </think>, or behind <think> at the start; a call in it is none. `begins_thinking`: what the model was given ends
  /// with <think>, so that the turn begins inside. A call that is malformed is there with its fault: no text is an error. Takes
  /// time in proportion to the text; what is beyond kMostCalls is one more call with a fault.
  ParsedTurn parse(std::string_view turn, bool begins_thinking = false) const;

  static constexpr size_t kMostCalls = 64;
};

/// "hermes", "mistral", "llama3" and "openai".
const std::vector<std::string>& tool_call_formats();

/// The format of that name. Throws UserError for another one.
ToolCallFormat tool_call_format(const std::string& name);

}  // namespace sluice::text
