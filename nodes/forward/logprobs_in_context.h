#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/json/json.h"
#include "engine/contract/contract.h"
#include "engine/contract/node.h"
#include "nodes/models/model_text.h"
#include "nodes/models/passes/forward_model.h"
#include "nodes/prompts/conversation.h"
#include "nodes/prompts/prompt_template.h"

namespace sluice::nodes {

/// Log-probability of each action under a model whose prompt says more than that of the policy: a demonstration, the reference
/// solution. As the teacher of `distill` it is the same model, so that the policy learns to do without: on-policy
/// self-distillation (Shenfeld et al. 2026, "Self-Distillation Enables Continual Learning", SDFT).
///
///   [nodes.teacher]
///   type = "logprobs_in_context"
///   inputs = ["generate"]
///   model = "teacher"                   # a frozen copy, or the actor itself: its live weights
///   context = "{question}\n\nThis is how an expert answers: {label}\n\nNow answer yourself."
///   max_tokens = 4096                   # the longest sample with that prompt
///   writes = "teacher_logprobs"
///   temperature = 1.0                   # as in generate
///   chat_variables = ''                 # as in the source
///   tools = ""                          # likewise
///
/// The tokens of a sample before its first action, which are its prompt, are replaced by those of the filled context; all that
/// comes after stays, also what others said between the turns. {question} is what the user said last where the prompt was
/// written from messages: then the context takes its place, and the model's chat template writes the conversation. Else it is the
/// prompt, and the context is the whole text. {label} is the column label. {{ and }} are braces.
///
/// Reads tokens[T], prompt[G], label[G] if the context names it, and messages[G] if there are any; writes `writes`[A], natural
/// logs, under the live weights. No gradient. Computed in passes of [budget] pass_tokens, which change no bit of it on the CPU. A
/// sample of more than max_tokens is a UserError that names its group.
struct LogprobsInContextParams {
  std::string model;
  std::string context;
  int64_t max_tokens = 0;
  std::string writes = "teacher_logprobs";
  engine::ScheduledNumber temperature = 1.0;
  std::string chat_variables;
  std::filesystem::path tools;
};

class LogprobsInContext final : public engine::Node {
 public:
  static void describe(engine::Contract<LogprobsInContextParams>& contract);

  LogprobsInContext(const LogprobsInContextParams& params, engine::NodeResources& resources);

  void process(engine::MicroBatch& batch) override;

 private:
  // Of a group: the tokens of its prompt with the context.
  std::vector<int64_t> prompt_of(const engine::MicroBatch& batch, size_t group) const;

  const LogprobsInContextParams params_;
  const PromptTemplate context_;
  const ChatExtras chat_extras_;
  const std::shared_ptr<const ForwardModel> model_;
  const std::shared_ptr<const ModelText> text_;
  const int64_t pass_tokens_;
};

}  // namespace sluice::nodes
