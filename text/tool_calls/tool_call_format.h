#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/tool_calls/call_by_name.h"
#include "text/tool_calls/call_json.h"
#include "text/tool_calls/tool_call.h"

namespace sluice::text {

/// What stands around the thinking of a turn.
struct ThinkingMarks {
  std::string open = "<think>";
  std::string close = "</think>";

  bool operator==(const ThinkingMarks&) const = default;
};

/// How a model writes tool calls: JSON that holds name and arguments, between two marks or alone, or a name with its arguments.
///
///   hermes   <tool_call>{"name": "add", "arguments": {"a": 1}}</tool_call>      Hermes, Qwen
///   mistral  [TOOL_CALLS] [{"name": "add", "arguments": {"a": 1}}]              Mistral
///   llama3   {"name": "add", "parameters": {"a": 1}}                            Llama 3, perhaps after <|python_tag|>
///   openai   [{"name": "add", "arguments": {"a": 1}}]                           a call, or a list of them, as JSON
///
/// Each JSON call, or pair of marks, may be an object or a list of objects, and an object may hold its own under "function".
/// Arguments may be an object or the text of one. Calls by name: see CallByName. A value: const use from many threads.
struct ToolCallFormat {
  std::string open;   // before a call; no letter in it: a turn that is calls as a whole is one
  std::string close;  // after it; empty: it ends with the turn
  std::string name_key = "name";
  std::string arguments_key = "arguments";
  std::optional<CallByName> by_name = {};  // else JSON with these keys
  ThinkingMarks thinking = {};
  bool wants_text = false;  // the template writes arguments only where a message has the text of their JSON

  bool operator==(const ToolCallFormat&) const = default;

  /// Of a turn as it was sampled, without the token that ended it, special tokens among its text. Thinking is what stands before
  /// the mark that closes it, or after the one that opens it, at the start; a call in it is none. `begins_thinking`: what the
  /// model was given ends with the opening mark, so that the turn begins inside. `tools`: schemas, as ChatOptions has them: what
  /// arguments are that a format writes as plain text. A call that is malformed is there with its fault: no text is an error.
  /// Takes time in proportion to the text; what is beyond kMostCalls is one more call with a fault.
  ParsedTurn parse(std::string_view turn, bool begins_thinking = false, const Json& tools = nullptr) const;

  static constexpr size_t kMostCalls = kMostCallsOfTurn;
};

/// "hermes", "mistral", "llama3" and "openai".
const std::vector<std::string>& tool_call_formats();

/// The format of that name. Throws UserError for another one.
ToolCallFormat tool_call_format(const std::string& name);

}  // namespace sluice::text
