#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json/json.h"
#include "text/chat/chat_template.h"
#include "text/tokenizer/tokenizer.h"

namespace sluice::cli {

/// A conversation as the tokens that a model gets. What it has said stays the tokens that it sampled, whatever a tokenizer would
/// make of their text; only what others say, and what the chat template writes around it all, is tokenised. The token that ended
/// an answer is the template's to write. An answer that the template shows otherwise than it was said (reasoning that is left out
/// of earlier turns) is tokenised as the template has it. Borrows both. Not thread-safe.
class ChatContext {
 public:
  /// `system`: the message that it begins with; empty: none.
  ChatContext(const text::Tokenizer& tokenizer, const text::ChatTemplate& chat, std::string system);

  /// The context in which the model answers `user`. Throws UserError for what the template refuses.
  std::vector<int64_t> ask(const std::string& user);

  /// What the model has said to that, without the token that ended it.
  void answer(std::span<const int64_t> tokens);

  /// The question is withdrawn that was asked last.
  void take_back() { messages_.erase(messages_.size() - 1); }

  /// Begins anew.
  void reset();

 private:
  struct Answer {
    std::string context;  // the text that it continues
    std::string text;
    std::vector<int64_t> tokens;
  };

  void append(std::string_view text, std::vector<int64_t>& ids) const;

  const text::Tokenizer& tokenizer_;
  const text::ChatTemplate& template_;
  const std::string system_;
  Json messages_;
  std::string context_;  // the text of the last ask()
  std::vector<Answer> answers_;
};

}  // namespace sluice::cli
