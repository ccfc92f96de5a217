#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "engine/contract/columns/micro_batch.h"
#include "nodes/models/model_text.h"

namespace sluice::nodes {

/// The tokens of prompts, which are needed when they are admitted and when they start: tokenised once, and kept in between.
/// Used by one thread.
class TokenizedPrompts {
 public:
  /// special: whether the tokenizer's special tokens are put around; nothing: unless a chat template wrote the prompt.
  TokenizedPrompts(std::shared_ptr<const ModelText> text, std::optional<bool> special)
      : text_(std::move(text)), special_(special) {}

  /// Valid until it is forgotten. Throws UserError for a prompt without tokens.
  const std::vector<int64_t>& of(const engine::Group& prompt) const;

  /// Of a prompt that starts, which is forgotten.
  std::vector<int64_t> take(const engine::Group& prompt);

  void forget(const engine::Group& prompt);
  void clear() { tokens_.clear(); }

 private:
  using Key = std::pair<int64_t, int64_t>;  // iteration, group

  static Key key_of(const engine::Group& prompt) { return {prompt.iteration, prompt.index}; }
  bool adds_special_tokens(const engine::Group& prompt) const;

  const std::shared_ptr<const ModelText> text_;
  const std::optional<bool> special_;
  mutable std::map<Key, std::vector<int64_t>> tokens_;
};

}  // namespace sluice::nodes
