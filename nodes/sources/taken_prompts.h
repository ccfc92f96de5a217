#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "engine/contract/contract.h"
#include "nodes/models/model_text.h"
#include "nodes/sources/row_source.h"

namespace sluice::nodes {

/// Tells prompts that the rollout after a source does not take, so that the source can refuse their rows before the run: empty
/// ones, and longer ones than its limit. Most texts are seen to be short enough without being tokenised. Const use from many
/// threads.
class TakenPrompts {
 public:
  /// `model`: with the tokenizer of the rollout.
  TakenPrompts(engine::PromptLimit limit, std::shared_ptr<const ModelText> model);

  /// `is_conversation`: a chat template wrote the text. Throws UserError where the tokenizer cannot be read.
  std::optional<RowCheck::Fault> fault_of(const std::string& text, bool is_conversation) const;

  /// Of a text, as the rollout counts them.
  int64_t tokens_of(const std::string& text, bool is_conversation) const;

  const engine::PromptLimit& limit() const { return limit_; }

 private:
  bool is_surely_taken(const std::string& text) const;

  engine::PromptLimit limit_;
  std::shared_ptr<const ModelText> model_;
  bool knows_ascii_ = false;    // each character of ASCII has a token
  int64_t special_tokens_ = 0;  // that the tokenizer adds to a text
};

}  // namespace sluice::nodes
