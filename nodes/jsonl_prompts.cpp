#include "nodes/jsonl_prompts.h"

#include <utility>

#include "base/strings.h"
#include "nodes/column_json.h"
#include "nodes/columns.h"
#include "nodes/conversation.h"

namespace sluice::nodes {
namespace {

std::vector<data::JsonlField> fields_of(const JsonlPromptsParams& params) {
  std::vector<data::JsonlField> fields{{params.prompt_field, "prompt_field"}};
  if (!params.messages_field.empty()) fields = {{params.messages_field, "messages_field", data::FieldKind::kMessages}};
  if (!params.label_field.empty()) fields.push_back({params.label_field, "label_field"});
  return fields;
}

void find_contradictions(const JsonlPromptsParams& params, engine::Findings& findings) {
  if (params.prompt_field.empty())
    findings.error("prompt_field", "prompt_field is empty", "name the field that holds the prompt");
  const bool limited = params.max_prompt_tokens > 0, chats = !params.messages_field.empty();
  check_chat_variables(params.chat_variables, chats, findings);
  if (chats && findings.changed("prompt_field"))
    findings.without_effect("prompt_field", "prompt_field has no effect beside messages_field", "remove one of the two");
  if (chats && params.model.empty())
    findings.error("messages_field", "messages_field needs model: its chat template writes the prompts", "model = NAME");
  if (limited && params.model.empty())
    findings.error("max_prompt_tokens", "max_prompt_tokens needs model: its tokenizer counts the tokens", "model = NAME");
  if (!limited && !chats && findings.changed("model"))
    findings.without_effect("model", "model has no effect without max_prompt_tokens and messages_field",
                            "set one of them, or remove model");
  if (!limited && findings.changed("too_long"))
    findings.without_effect("too_long", "too_long has no effect while max_prompt_tokens is 0",
                            "set max_prompt_tokens, or remove too_long");
}

}  // namespace

void JsonlPrompts::describe(engine::Contract<JsonlPromptsParams>& c) {
  using P = JsonlPromptsParams;
  c.type("jsonl_prompts", "prompts and reference answers from files of one JSON object a line");
  describe_paths(c);
  c.param("prompt_field", &P::prompt_field).doc("field of the prompt; \"a.b\" is the field b of the object a");
  c.param("label_field", &P::label_field).doc("field of the reference answer; empty: there is none");
  describe_order(c, "prompts");
  c.param("prefix", &P::prefix).doc("text before each prompt");
  c.param("suffix", &P::suffix).doc("text behind each prompt");
  c.param("messages_field", &P::messages_field)
      .doc("field of a conversation, a list of {role, content}, that becomes the prompt; empty: prompt_field does");
  c.param("chat_variables", &P::chat_variables).doc("what else the chat template is told: a JSON object");
  c.model("model", &P::model, engine::ModelUse::kReads).doc("the model whose chat template and tokenizer are used");
  c.param("max_prompt_tokens", &P::max_prompt_tokens).at_least(0).doc("the longest prompt; 0: no limit").unit("tokens");
  c.param("too_long", &P::too_long).doc("a longer prompt is an error, or left out and counted");
  c.writes(columns::kPrompt, columns::kLabel);
  c.writes_if([](const P& params) { return !params.messages_field.empty(); }, columns::kMessages);
  c.needs([](const P& params, engine::NodeNeeds& needs) {
    needs.groups_per_iteration = params.groups_per_iteration;
    const int64_t text = longest_text(params.path);
    if (!params.messages_field.empty()) {
      needs.must_agree["add_special_tokens"] = 0;  // the template writes them; its prompts are bounded by their tokens
      needs.by_products.insert(columns::kMessages.spec().name);
      needs.string_bytes[columns::kMessages.spec().name] = text;
    } else {
      needs.string_bytes[columns::kPrompt.spec().name] = static_cast<int64_t>(params.prefix.size() + params.suffix.size()) + text;
    }
    needs.string_bytes[columns::kLabel.spec().name] = params.label_field.empty() ? 0 : text;
  });
  c.check(find_contradictions);
  describe_dropped(c);
}

JsonlPrompts::JsonlPrompts(const JsonlPromptsParams& params, engine::NodeResources& resources)
    : params_(params),
      metrics_(resources.metrics),
      model_(params.model.empty() ? nullptr : language_model(resources, params.model)),
      chat_variables_(chat_variables(params.chat_variables)),
      rows_(dataset_options(params, resources), fields_of(params)),
      check_(params.too_long) {
  if (params_.max_prompt_tokens > 0 || reads_messages())
    check_.run(rows_, [this](data::Dataset::RowId id) { return fault_of(id); });
}

bool JsonlPrompts::next_group(engine::Group& group) {
  const auto id = cursor_.draw(rows_);
  if (!id) return false;
  Row next = row(*id);
  group.layout.end_group();
  group.write(columns::kPrompt)[0] = std::move(next.prompt);
  group.write(columns::kLabel)[0] = std::move(next.label);
  if (reads_messages()) group.write(columns::kMessages)[0] = std::move(next.messages);
  return true;
}

JsonlPrompts::Row JsonlPrompts::row(data::Dataset::RowId id) const {
  const std::vector<Json> values = rows_.values(id);
  const std::string prompt = reads_messages() ? chat_prompt(*model_, values[0], chat_variables_) : data::text_of(values[0]);
  return {.prompt = params_.prefix + prompt + params_.suffix,
          .label = values.size() > 1 ? data::text_of(values[1]) : std::string(),
          .messages = reads_messages() ? dump_json(values[0]) : std::string()};
}

std::optional<RowCheck::Fault> JsonlPrompts::fault_of(data::Dataset::RowId id) const {
  const std::string prompt = row(id).prompt;
  if (params_.max_prompt_tokens == 0) return std::nullopt;
  const auto tokens = static_cast<int64_t>(model_->tokenizer().encode(prompt, /*add_special=*/!reads_messages()).size());
  if (tokens <= params_.max_prompt_tokens) return std::nullopt;
  return RowCheck::Fault{
      "the prompt has " + plural(tokens, "token") + ", max_prompt_tokens is " + std::to_string(params_.max_prompt_tokens),
      "raise max_prompt_tokens, or leave such prompts out with too_long = \"drop\"", /*too_long=*/true};
}

}  // namespace sluice::nodes
