#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "text/chat/chat_template.h"
#include "text/tool_calls/tool_call_format.h"

namespace sluice::text {

/// What a tool has answered to a call.
struct ToolResult {
  ToolCall call;
  std::string text;
};

/// A chat of a model with tools, as the model's template has it: reads what the model wrote, and writes what follows. Borrows the
/// template. const use from many threads.
class ToolChat {
 public:
  /// `tools`: JSON schemas, as ChatOptions has them. Throws UserError where the template shows a model no result of a tool, be it
  /// in a message of the role tool or of the user's.
  ToolChat(const ChatTemplate& chat, ToolCallFormat format, Json tools, Json variables = Json::object());

  /// Of a turn as it was sampled; see ToolCallFormat::parse. `index`: 0 is the first of a conversation. `end`: the text of the
  /// token that ended the turn, if one did; it may close a call.
  ParsedTurn parse(std::string_view turn, int64_t index, std::string_view end = {}) const;

  /// The text between a turn of the model and its next: the end of its message, the results, and what the template writes where
  /// the assistant begins to speak. `end`: the text of the token that ended the turn, if one did: it is not written again.
  /// `index`: of the turn, for templates that write the results of later ones in another way. Nothing of the turn is rendered, so
  /// what the model wrote stays what it was, even where the template would leave it out (thinking of earlier turns). Throws
  /// UserError for what the template refuses. `results`: one or more.
  std::string after(std::span<const ToolResult> results, std::string_view end, int64_t index = 0) const;

 private:
  struct Tails;

  Tails tails(std::span<const ToolResult> called, std::span<const ToolResult> results, int64_t index) const;
  size_t end_of_calls(std::string_view tail, const ToolResult& last) const;
  Json said(std::span<const ToolResult> called, const std::string& mark) const;
  void append(std::span<const ToolResult> results, Json& messages) const;
  std::string render(const Json& messages, bool add_generation_prompt) const;
  bool shows_results() const;
  bool holds_name() const;  // an id
  bool begins_inside(std::string_view prompt) const;

  const ChatTemplate& chat_;
  ToolCallFormat format_;  // with the template's marks of thinking
  const Json tools_;
  const Json variables_;
  std::optional<ToolCallFormat> written_;  // as the template writes calls; nothing: a call is what a message says
  std::string role_;                       // of results
  std::string message_end_;                // what the template writes after what the assistant says
  bool begins_thinking_ = false;           // the first turn does
  bool goes_on_thinking_ = false;          // turns after a result do
};

}  // namespace sluice::text
