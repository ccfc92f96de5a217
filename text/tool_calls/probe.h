#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/chat/chat_template.h"
#include "text/tool_calls/tool_call_format.h"

namespace sluice::text {

/// Conversations that no template writes by itself, rendered: how a template writes what a call has in it is found by looking for
/// that in the text. Borrows the template.
class TemplateProbe {
 public:
  struct Call {
    std::string name;
    Json arguments;
  };

  TemplateProbe(const ChatTemplate& chat, Json variables) : chat_(chat), variables_(std::move(variables)) {}

  /// What a model would have to write to make the calls, without thinking and the end of the message. `as_text`: the message has
  /// the text of the arguments. Nothing: the template refuses them, or shows nothing where the assistant speaks.
  std::optional<std::string> said(const std::vector<Call>& calls, bool as_text, const ThinkingMarks& thinking) const;

  /// The marks around what a template shows of a message's reasoning; where it shows none, those of a prompt that ends with one
  /// that opens, or the usual ones.
  ThinkingMarks thinking() const;

  static std::string id(size_t index);

 private:
  std::optional<std::string> rendered(const Json& message, bool add_generation_prompt) const;
  std::optional<ThinkingMarks> thinking_of(Json message, const std::string& prompt, const std::string& what) const;
  Json called(const std::vector<Call>& calls, bool as_text) const;

  const ChatTemplate& chat_;
  const Json variables_;
};

}  // namespace sluice::text
