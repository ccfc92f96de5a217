#include "nodes/forward/logprobs_in_context.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>

#include "base/error.h"
#include "base/text/strings.h"
#include "nodes/columns/columns.h"
#include "nodes/forward/forward.h"
#include "nodes/forward/ragged.h"
#include "nodes/models/model_parts.h"
#include "nodes/prompts/conversation.h"

namespace sluice::nodes {

using engine::MicroBatch;
using engine::Range;

namespace {

PromptTemplate context_of(const LogprobsInContextParams& params) {
  return PromptTemplate(params.context, "context", "question or label");
}

bool names_label(const PromptTemplate& context) { return std::ranges::find(context.fields(), "label") != context.fields().end(); }

// One that cannot be read is reported by check_context().
bool reads_label(const LogprobsInContextParams& params) {
  try {
    return names_label(context_of(params));
  } catch (const UserError&) {
    return false;
  }
}

void check_context(const LogprobsInContextParams& params, engine::Findings& findings) {
  try {
    const PromptTemplate context = context_of(params);
    for (const std::string& name : context.fields()) {
      if (name != "question" && name != "label")
        findings.error("context", "context names {" + name + "}, which is not known here",
                       "{question} or {label}; {{ and }} are braces");
    }
  } catch (const UserError& error) {
    findings.error("context", error);
  }
}

// Samples with other prompts, on their way into passes.
struct Lengthened {
  std::vector<int64_t> tokens;
  engine::Layout layout;
};

}  // namespace

void LogprobsInContext::describe(engine::Contract<LogprobsInContextParams>& c) {
  using P = LogprobsInContextParams;
  c.type("logprobs_in_context", "log-probability of each action under a model whose prompt says more");
  c.model("model", &P::model, engine::ModelUse::kReads, "language_model").required().doc("whose live weights are asked");
  c.param("context", &P::context).required().doc("the prompt that it gets instead, with {question} and {label}");
  c.param("max_tokens", &P::max_tokens).required().at_least(2).unit("tokens").doc("the longest sample with that prompt");
  c.param("writes", &P::writes).doc("name of the column");
  c.param("temperature", &P::temperature).above(0).doc("divides the logits; as in the node that samples");
  c.param("chat_variables", &P::chat_variables).doc("a JSON object of what else the chat template is told; as in the source");
  c.param("tools", &P::tools).doc("file of the tools that it shows the model, likewise");
  c.reads(columns::kTokens, columns::kPrompt);
  c.reads_if(reads_label, columns::kLabel);
  c.reads_if_written(columns::kMessages);
  c.writes_named(&P::writes, engine::DType::kFloat32, engine::Extent::kAction);
  c.needs([](const P& params, engine::NodeNeeds& needs) {
    needs.worst_sample_tokens = params.max_tokens;
    needs.must_agree["temperature"] = params.temperature;
  });
  c.check(check_context);
  c.check([](const P& params, engine::Findings& findings) {
    check_chat_variables(params.chat_variables, /*uses_template=*/true, findings);  // prompts may be of messages
  });
}

LogprobsInContext::LogprobsInContext(const LogprobsInContextParams& params, engine::NodeResources& resources)
    : params_(params),
      context_(context_of(params)),
      chat_extras_(chat_extras(params.chat_variables, params.tools)),
      model_(forward_model(resources, params.model)),
      text_(model_text(resources, params.model)),
      pass_tokens_(resources.pass_tokens) {}

void LogprobsInContext::process(MicroBatch& batch) {
  const at::NoGradGuard no_gradient;
  const auto tokens = batch.read(columns::kTokens);                                                                  // [T]
  auto logprobs = batch.write({params_.writes, engine::DType::kFloat32, engine::Extent::kAction}).entries<float>();  // [A]
  const std::vector<Range> of_samples = batch.tokens_by_sample(), actions = batch.actions_by_sample();

  Lengthened samples;
  size_t group = 0;
  for (const Range of_group : batch.layout().samples_by_group()) {
    const std::vector<int64_t> prompt = prompt_of(batch, group);
    for (size_t s = of_group.begin; s < of_group.end; ++s) {
      const bool acts = actions[s].size() > 0;
      const size_t first = acts ? static_cast<size_t>(batch.layout().action_tokens[actions[s].begin]) : of_samples[s].end;
      const auto length = static_cast<int64_t>(prompt.size() + of_samples[s].end - first);
      if (length > params_.max_tokens) {
        throw UserError("with the context a sample of group " + std::to_string(batch.group_index(group)) + " has " +
                            plural(length, "token") + ", max_tokens is " + std::to_string(params_.max_tokens),
                        "raise max_tokens, or let the source leave out what is long");
      }
      samples.tokens.insert(samples.tokens.end(), prompt.begin(), prompt.end());
      samples.tokens.insert(samples.tokens.end(), tokens.begin() + static_cast<std::ptrdiff_t>(first),
                            tokens.begin() + static_cast<std::ptrdiff_t>(of_samples[s].end));
      std::vector<int64_t> places;
      for (size_t a = actions[s].begin; a < actions[s].end; ++a) {
        places.push_back(static_cast<int64_t>(prompt.size()) + batch.layout().action_tokens[a] - static_cast<int64_t>(first));
      }
      samples.layout.add_sample(length, places);
    }
    samples.layout.end_group();
    ++group;
  }
  const double temperature = params_.temperature.at(batch.iteration());
  const auto compute = [&](const RaggedSamples& pass) { return policy_logprobs(*model_, pass, temperature); };
  fill_in_passes({samples.tokens}, samples.layout, pass_tokens_, compute, logprobs);
  require_finite(logprobs, "log-probabilities of model " + model_->name());
}

std::vector<int64_t> LogprobsInContext::prompt_of(const MicroBatch& batch, size_t group) const {
  Json messages;  // null: the prompt is a text
  if (batch.has(columns::kMessages.spec()) && !batch.read(columns::kMessages)[group].empty())
    messages = parse_json(batch.read(columns::kMessages)[group], "messages");
  Json* const asked = last_user_message(messages);
  if (asked == nullptr && !messages.is_null()) {
    throw UserError("the user says nothing in the messages of group " + std::to_string(batch.group_index(group)),
                    "the context takes the place of what the user said last");
  }
  const std::string question = asked == nullptr ? batch.read(columns::kPrompt)[group] : content_of(*asked);
  std::vector<std::string> values;
  for (const std::string& name : context_.fields())
    values.push_back(name == "label" ? batch.read(columns::kLabel)[group] : question);
  std::string prompt = context_.fill(values);
  if (asked != nullptr) {
    (*asked)["content"] = std::move(prompt);
    prompt = chat_prompt(*text_, messages, chat_extras_);
  }
  std::vector<int64_t> tokens = text_->tokenizer().encode(prompt, /*add_special=*/asked == nullptr);
  if (tokens.empty()) {
    throw UserError("with the context the prompt of group " + std::to_string(batch.group_index(group)) + " has no tokens",
                    "the first action needs a token before it");
  }
  return tokens;
}

}  // namespace sluice::nodes
