#include "nodes/sources/jsonl_examples.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/text/strings.h"
#include "nodes/columns/columns.h"
#include "nodes/models/model_parts.h"
#include "nodes/sources/row_look.h"

namespace sluice::nodes {
namespace {

void find_contradictions_of_examples(const JsonlExamplesParams& params, engine::Findings& findings) {
  const PromptFormat format = prompt_format(params);
  if (params.prompt_field.empty())
    findings.error("prompt_field", "prompt_field is empty", "name the field that holds the prompt");
  if (params.completion_field.empty()) findings.error("completion_field", "completion_field is empty", "name the field to learn");
  check_chat_variables(params.chat_variables, /*uses_template=*/true, findings);  // rows may be conversations whatever is written
  if (format.reads_messages() && findings.changed("completion_field"))
    findings.without_effect("completion_field", "completion_field has no effect beside messages_field",
                            "remove it, or messages_field");
  if (format.uses_template() && findings.changed("add_end_of_sequence"))
    findings.without_effect("add_end_of_sequence", "add_end_of_sequence has no effect on what a chat template writes",
                            "remove it");
}

// Before a run: all rows as the run will see them, or the first without the tokenizer.
void look_at_examples(const JsonlExamplesParams& params, engine::DataLook& look) {
  if (!has_needed_template(prompt_format(params), params.model, look)) return;
  const ModelText model(params.model, look.folder_of(params.model));
  const ExampleRows examples(params, model, look.all() ? end_of_texts(params, model) : std::nullopt);
  RowLook rows(params, examples.fields(), look);
  rows.check([&](data::Dataset::RowId id) -> std::optional<RowCheck::Fault> {
    const std::vector<Json> values = rows.values(id);
    rows.note_unknown(values, id);
    examples.check(values);
    if (!look.all()) return std::nullopt;
    return examples.fault_of(examples.example(values));
  });
  rows.warn(examples.plain_prompt(rows.first_values()));
}

}  // namespace

void JsonlExamples::describe(engine::Contract<JsonlExamplesParams>& c) {
  using P = JsonlExamplesParams;
  c.type("jsonl_examples", "prompts with completions to learn, from JSON lines, JSON arrays, Parquet or Arrow");
  describe_paths(c);
  describe_prompt(c);
  c.param("completion_field", &P::completion_field).doc("field of the text to learn, or of the messages");
  c.param("messages_field", &P::messages_field)
      .doc(
          "field of a conversation, a list of {role, content} or {from, value}, of which the assistant's words are learned; "
          "empty: prompt and completion");
  c.model("model", &P::model, engine::ModelUse::kReads).required().doc("the model whose tokenizer and chat template are used");
  c.param("max_tokens", &P::max_tokens).required().at_least(2).doc("the longest example, prompt and completion").unit("tokens");
  c.param("too_long", &P::too_long).doc("a longer example is an error, or left out and counted");
  c.param("add_end_of_sequence", &P::add_end_of_sequence)
      .doc("put the end of sequence after each completion that is a text, so that it is learned too");
  describe_order(c, "examples");
  c.writes(columns::kPrompt, columns::kTokens);
  c.needs([](const P& params, engine::NodeNeeds& needs) {
    needs.groups_per_iteration = params.groups_per_iteration;
    needs.samples_per_group = 1;
    needs.worst_sample_tokens = params.max_tokens;
    const PromptFormat format = prompt_format(params);
    if (!format.uses_template())
      needs.string_bytes[columns::kPrompt.spec().name] = most_prompt_bytes(format, longest_text(params.path));
  });
  c.check(find_contradictions_of_examples);
  c.data(look_at_examples);
  describe_dropped(c);
}

ExampleRows::ExampleRows(const JsonlExamplesParams& params, const ModelText& model, std::optional<int64_t> end_of_sequence)
    : params_(params),
      model_(model),
      chat_extras_(chat_extras(params.chat_variables, params.tools)),
      reader_(prompt_format(params), {.kind = data::FieldKind::kTextOrMessages}),
      end_of_sequence_(end_of_sequence) {}

std::vector<data::JsonlField> ExampleRows::fields() const {
  std::vector<data::JsonlField> fields = reader_.fields();
  if (reads_messages()) return fields;
  fields.push_back({params_.completion_field, "completion_field", data::FieldKind::kTextOrMessages});
  for (data::JsonlField& field : fields) {
    if (field.param.ends_with("_field")) field.list_param = "messages_field";  // a row that is one conversation
  }
  return fields;
}

Answered ExampleRows::answer(const std::vector<Json>& values) const {
  const Json& completion = values.back();
  return answered(reader_.read(values), completion.is_array() ? completion : Json(data::text_of(completion)));
}

LearnedConversation ExampleRows::example(const std::vector<Json>& values) const {
  if (reads_messages()) return learned_conversation(model_, reader_.read(values), chat_extras_);
  return learned_answer(model_, answer(values), chat_extras_, end_of_sequence_);
}

void ExampleRows::check(const std::vector<Json>& values) const {
  if (reads_messages()) return check_conversation(model_, reader_.read(values), chat_extras_);
  const Answered pair = answer(values);
  if (pair.prompt.is_array()) check_conversation(model_, joined(pair.prompt, pair.completion), chat_extras_);
}

std::optional<std::string> ExampleRows::plain_prompt(const std::vector<Json>& values) const {
  const Json prompt = reader_.read(values);
  return prompt.is_string() ? std::optional(prompt.get<std::string>()) : std::nullopt;
}

std::optional<RowCheck::Fault> ExampleRows::fault_of(const LearnedConversation& next) const {
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

JsonlExamples::JsonlExamples(const JsonlExamplesParams& params, engine::NodeResources& resources)
    : model_(model_text(resources, params.model)),
      examples_(params, *model_, end_of_texts(params, *model_)),
      rows_(params, examples_.fields(), resources) {
  rows_.check([this](const std::vector<Json>& values) { return examples_.fault_of(examples_.example(values)); });
}

bool JsonlExamples::next_group(engine::Group& group) {
  const auto values = rows_.draw();
  if (!values) return false;
  LearnedConversation next = examples_.example(*values);
  group.layout.add_sample(static_cast<int64_t>(next.tokens.size()), next.actions);
  group.layout.end_group();
  group.write(columns::kPrompt)[0] = std::move(next.prompt);
  std::ranges::copy(next.tokens, group.write(columns::kTokens).begin());
  return true;
}

}  // namespace sluice::nodes
