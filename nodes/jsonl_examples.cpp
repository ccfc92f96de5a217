#include "nodes/jsonl_examples.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/strings.h"
#include "nodes/columns.h"

namespace sluice::nodes {
namespace {

std::vector<data::JsonlField> fields_of(const JsonlExamplesParams& params) {
  if (!params.messages_field.empty()) return {{params.messages_field, "messages_field", data::FieldKind::kMessages}};
  return {{params.prompt_field, "prompt_field"}, {params.completion_field, "completion_field"}};
}

}  // namespace

void JsonlExamples::describe(engine::Contract<JsonlExamplesParams>& c) {
  using P = JsonlExamplesParams;
  c.type("jsonl_examples", "prompts with completions to learn, from files of one JSON object a line");
  describe_paths(c);
  c.param("prompt_field", &P::prompt_field).doc("field of the prompt");
  c.param("completion_field", &P::completion_field).doc("field of the text to learn");
  c.param("messages_field", &P::messages_field)
      .doc(
          "field of a conversation, a list of {role, content}, of which the assistant's words are learned; empty: prompt and "
          "completion");
  c.param("chat_variables", &P::chat_variables).doc("what else the chat template is told: a JSON object");
  c.model("model", &P::model, engine::ModelUse::kReads).required().doc("the model whose tokenizer and chat template are used");
  c.param("max_tokens", &P::max_tokens).required().at_least(2).doc("the longest example, prompt and completion").unit("tokens");
  c.param("too_long", &P::too_long).doc("a longer example is an error, or left out and counted");
  c.param("add_end_of_sequence", &P::add_end_of_sequence)
      .doc("put the end of sequence behind each completion, so that it is learned too");
  describe_order(c, "examples");
  c.writes(columns::kPrompt, columns::kTokens);
  c.needs([](const P& params, engine::NodeNeeds& needs) {
    needs.groups_per_iteration = params.groups_per_iteration;
    needs.samples_per_group = 1;
    needs.worst_sample_tokens = params.max_tokens;
    if (params.messages_field.empty()) needs.string_bytes[columns::kPrompt.spec().name] = longest_text(params.path);
  });
  c.check([](const P& params, engine::Findings& findings) {
    if (params.prompt_field.empty())
      findings.error("prompt_field", "prompt_field is empty", "name the field that holds the prompt");
    if (params.completion_field.empty())
      findings.error("completion_field", "completion_field is empty", "name the field to learn");
    check_chat_variables(params.chat_variables, !params.messages_field.empty(), findings);
    if (params.messages_field.empty()) return;
    for (const char* key : {"prompt_field", "completion_field", "add_end_of_sequence"}) {
      if (findings.changed(key))
        findings.without_effect(key, std::string(key) + " has no effect beside messages_field", "remove it, or messages_field");
    }
  });
  describe_dropped(c);
}

JsonlExamples::JsonlExamples(const JsonlExamplesParams& params, engine::NodeResources& resources)
    : params_(params),
      metrics_(resources.metrics),
      model_(language_model(resources, params.model)),
      chat_variables_(chat_variables(params.chat_variables)),
      rows_(dataset_options(params, resources), fields_of(params)),
      check_(params.too_long) {
  if (params.add_end_of_sequence && !reads_messages())
    end_of_sequence_ = end_of_sequence(*model_, "set add_end_of_sequence = false");
  check_.run(rows_, [this](data::Dataset::RowId id) { return fault_of(id); });
}

bool JsonlExamples::next_group(engine::Group& group) {
  const auto row = cursor_.draw(rows_);
  if (!row) return false;
  LearnedConversation next = example(*row);
  group.layout.add_sample(static_cast<int64_t>(next.tokens.size()), next.actions);
  group.layout.end_group();
  group.write(columns::kPrompt)[0] = std::move(next.prompt);
  std::ranges::copy(next.tokens, group.write(columns::kTokens).begin());
  return true;
}

LearnedConversation JsonlExamples::example(data::Dataset::RowId id) const {
  const std::vector<Json> values = rows_.values(id);
  if (reads_messages()) return learned_conversation(*model_, values[0], chat_variables_);
  return learned_text(*model_, data::text_of(values[0]), data::text_of(values[1]), end_of_sequence_);
}

std::optional<RowCheck::Fault> JsonlExamples::fault_of(data::Dataset::RowId id) const {
  const LearnedConversation next = example(id);
  const auto tokens = static_cast<int64_t>(next.tokens.size());
  if (tokens > params_.max_tokens)
    return RowCheck::Fault{"the example has " + plural(tokens, "token") + ", max_tokens is " + std::to_string(params_.max_tokens),
                           "raise max_tokens, or leave such examples out with too_long = \"drop\"", /*too_long=*/true};
  if (!next.actions.empty() && next.actions.front() == 0)
    return RowCheck::Fault{"the prompt has no tokens", "the first token of a sample cannot be learned; give a prompt"};
  if (next.actions.empty() && reads_messages())
    return RowCheck::Fault{"the assistant says nothing in it, so there is nothing to learn", "leave the line out"};
  if (next.actions.empty())
    return RowCheck::Fault{"the completion has no tokens, so there is nothing to learn",
                           "leave the line out, or set add_end_of_sequence = true"};
  return std::nullopt;
}

}  // namespace sluice::nodes
