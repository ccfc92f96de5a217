#include "nodes/sources/jsonl_prompts.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <limits>
#include <memory>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/text/strings.h"
#include "nodes/columns/columns.h"
#include "nodes/models/model_parts.h"
#include "nodes/prompts/conversation.h"
#include "nodes/sources/row_look.h"

namespace sluice::nodes {
namespace {

void find_contradictions_of_prompts(const JsonlPromptsParams& params, engine::Findings& findings) {
  const PromptFormat format = prompt_format(params);
  const bool limited = params.max_prompt_tokens > 0;
  if (params.prompt_field.empty())
    findings.error("prompt_field", "prompt_field is empty", "name the field that holds the prompt");
  check_chat_variables(params.chat_variables, format.uses_template(), findings);
  if (format.uses_template() && params.model.empty()) {
    const std::string key = format.reads_messages() ? "messages_field" : "chat";
    findings.error(key, key + " needs model: its chat template writes the prompts", "model = NAME");
  }
  if (limited && params.model.empty())
    findings.error("max_prompt_tokens", "max_prompt_tokens needs model: its tokenizer counts the tokens", "model = NAME");
  if (!limited && !format.uses_template() && findings.changed("model"))
    findings.without_effect("model", "model has no effect without max_prompt_tokens, chat = true or messages_field",
                            "set one of them, or remove model");
  if (!limited && findings.changed("too_long"))
    findings.without_effect("too_long", "too_long has no effect while max_prompt_tokens is 0",
                            "set max_prompt_tokens, or remove too_long");
}

void check_prompt_columns(const JsonlPromptsParams& params, engine::Findings& findings) {
  const std::vector<engine::ColumnSpec> taken = columns::standard();
  std::set<std::string> seen;
  for (const std::string& column : params.columns) {
    if (column.empty())
      findings.error("columns", "a column has no name", "name the fields that become columns");
    else if (std::ranges::find(taken, column, &engine::ColumnSpec::name) != taken.end())
      findings.error("columns", "a column " + sluice::quoted(column) + " has a meaning of its own for nodes",
                     "give the field another name in the data");
    else if (!seen.insert(column).second)
      findings.error("columns", sluice::quoted(column) + " is named twice", "name it once");
  }
}

// Before a run: all rows as the run will see them, or the first without counting tokens.
void look_at_prompts(const JsonlPromptsParams& params, engine::DataLook& look) {
  if (!has_needed_template(prompt_format(params), params.model, look)) return;
  const auto model = params.model.empty() ? nullptr : std::make_shared<ModelText>(params.model, look.folder_of(params.model));
  const PromptRows prompts(params, model, look.text_checks(), look.all() ? look.prompt_limit() : std::nullopt);
  RowLook rows(params, prompts.fields(), look);
  rows.check([&](data::Dataset::RowId id) {
    const PromptRows::Prompt prompt = prompts.prompt(rows.values(id));
    rows.note_unknown(prompt.text, id);
    if (look.all()) return prompts.fault_of(prompt);
    prompts.look_at_texts(prompt);
    return std::optional<RowCheck::Fault>();
  });
  prompts.refuse_if_all_are_left_out(rows.rows());
  rows.warn(prompts.prompt(rows.first_values()).text);
}

}  // namespace

void JsonlPrompts::describe(engine::Contract<JsonlPromptsParams>& c) {
  using P = JsonlPromptsParams;
  const auto uses_template = [](const P& params) { return prompt_format(params).uses_template(); };
  c.type("jsonl_prompts", "prompts and reference answers from JSON lines, JSON arrays, Parquet or Arrow");
  describe_paths(c);
  describe_prompt(c);
  c.param("label_field", &P::label_field).doc("field of the reference answer; empty: there is none");
  c.param("columns", &P::columns).doc("other fields of the rows, each of which becomes a text column of its name");
  describe_order(c, "prompts");
  c.param("prefix", &P::prefix).doc("text before each prompt, with chat = true within the user's turn");
  c.param("suffix", &P::suffix).doc("text after each prompt, likewise");
  c.param("messages_field", &P::messages_field)
      .doc(
          "field of a conversation, a list of {role, content} or {from, value}, that becomes the prompt; empty: prompt_field "
          "does");
  c.model("model", &P::model, engine::ModelUse::kReads).doc("the model whose chat template and tokenizer are used");
  c.param("max_prompt_tokens", &P::max_prompt_tokens).at_least(0).doc("the longest prompt; 0: no limit").unit("tokens");
  c.param("too_long", &P::too_long).doc("a longer prompt is an error, or left out and counted");
  c.writes(columns::kPrompt);
  c.writes_if([](const P& params) { return !params.label_field.empty(); }, columns::kLabel);
  c.writes_by_product_if(uses_template, columns::kMessages);
  c.needs([](const P& params, engine::NodeNeeds& needs) {
    needs.groups_per_iteration = params.groups_per_iteration;
    const PromptFormat format = prompt_format(params);
    const int64_t row = longest_text(params.path);
    if (format.uses_template()) {
      needs.must_agree["add_special_tokens"] = 0;  // the template writes them; its prompts are bounded by their tokens
      needs.string_bytes[columns::kMessages.spec().name] = most_messages_bytes(format, row);
    } else {
      needs.string_bytes[columns::kPrompt.spec().name] = most_prompt_bytes(format, row);
    }
    if (!params.label_field.empty()) needs.string_bytes[columns::kLabel.spec().name] = row;
    for (const std::string& column : params.columns) {
      needs.writes.push_back({column, engine::DType::kString, engine::Extent::kGroup});
      needs.string_bytes[column] = row;
    }
  });
  c.check(check_prompt_columns);
  c.check(find_contradictions_of_prompts);
  c.data(look_at_prompts);
  describe_dropped(c);
}

PromptRows::PromptRows(const JsonlPromptsParams& params, std::shared_ptr<const ModelText> model,
                       std::vector<engine::TextCheck> checks, std::optional<engine::PromptLimit> limit)
    : params_(params),
      model_(std::move(model)),
      chat_extras_(chat_extras(params.chat_variables, params.tools)),
      reader_(prompt_format(params)),
      checks_(std::move(checks)) {
  if (!limit) return;
  const bool is_own = model_ != nullptr && limit->model == params_.model;
  const auto text = is_own ? model_ : std::make_shared<const ModelText>(limit->model, limit->folder);
  taken_.emplace(std::move(*limit), text);
}

std::vector<data::JsonlField> PromptRows::fields() const {
  std::vector<data::JsonlField> fields = reader_.fields();
  for (const std::string& column : params_.columns) fields.push_back({column, "columns"});
  if (!params_.label_field.empty()) fields.push_back({params_.label_field, "label_field"});
  return fields;
}

PromptRows::Prompt PromptRows::prompt(const std::vector<Json>& values) const {
  Prompt prompt;
  if (!params_.label_field.empty()) prompt.label = data::text_of(values.back());
  const size_t first = reader_.fields().size();
  for (size_t i = 0; i < params_.columns.size(); ++i) prompt.columns.push_back(data::text_of(values[first + i]));
  Json read = reader_.read(values);
  if (!read.is_array()) {
    prompt.text = read.get<std::string>();
    return prompt;
  }
  const bool around = reader_.format().reads_messages();  // else they are within the user's turn
  prompt.text = chat_prompt(*model_, read, chat_extras_);
  if (around) prompt.text = params_.prefix + prompt.text + params_.suffix;
  prompt.messages = std::move(read);
  return prompt;
}

void PromptRows::look_at_texts(const Prompt& prompt) const {
  for (const engine::TextCheck& check : checks_) {
    const auto place = std::ranges::find(params_.columns, check.column) - params_.columns.begin();
    if (place < std::ssize(params_.columns))
      check.look_at(prompt.columns[static_cast<size_t>(place)]);
    else if (has_labels() && check.column == columns::kLabel.spec().name)
      check.look_at(prompt.label);
  }
}

std::optional<RowCheck::Fault> PromptRows::fault_of(const Prompt& prompt) const {
  look_at_texts(prompt);
  if (auto longer = longer_than_allowed(prompt)) return longer;
  return taken_ ? taken_->fault_of(prompt.text, !prompt.messages.is_null()) : std::nullopt;
}

void PromptRows::refuse_if_all_are_left_out(const data::Dataset& rows) const {
  if (!taken_ || !taken_->limit().leaves_out_longer) return;
  int64_t shortest = std::numeric_limits<int64_t>::max();
  for (size_t source = 0; source < rows.sources(); ++source) {
    for (size_t row = 0; row < rows.rows(source); ++row) {
      const Prompt next = prompt(rows.values({source, row}));
      shortest = std::min(shortest, taken_->tokens_of(next.text, !next.messages.is_null()));
      if (shortest <= taken_->limit().tokens) return;  // mostly the first one
    }
  }
  const std::string &node = taken_->limit().node, limit = std::to_string(taken_->limit().tokens);
  throw UserError("no prompt is left: the shortest has " + plural(shortest, "token") + ", max_prompt_tokens of node '" + node +
                      "' is " + limit + ", and prompt_too_long = \"drop\" leaves out what is longer",
                  "max_prompt_tokens >= " + std::to_string(shortest) + " in [nodes." + node + "]");
}

std::optional<RowCheck::Fault> PromptRows::longer_than_allowed(const Prompt& prompt) const {
  if (params_.max_prompt_tokens == 0) return std::nullopt;
  const bool add_special = prompt.messages.is_null();
  const auto tokens = static_cast<int64_t>(model_->tokenizer().encode(prompt.text, add_special).size());
  if (tokens <= params_.max_prompt_tokens) return std::nullopt;
  return RowCheck::Fault{
      "the prompt has " + plural(tokens, "token") + ", max_prompt_tokens is " + std::to_string(params_.max_prompt_tokens),
      "raise max_prompt_tokens, or leave such prompts out with too_long = \"drop\"", /*too_long=*/true};
}

JsonlPrompts::JsonlPrompts(const JsonlPromptsParams& params, engine::NodeResources& resources)
    : prompts_(params, params.model.empty() ? nullptr : model_text(resources, params.model), resources.text_checks,
               resources.prompt_limit),
      rows_(params, prompts_.fields(), resources) {
  if (!prompts_.checks()) return;
  rows_.check([this](const std::vector<Json>& values) { return prompts_.fault_of(prompts_.prompt(values)); });
  prompts_.refuse_if_all_are_left_out(rows_.all());
}

bool JsonlPrompts::next_group(engine::Group& group) {
  const auto values = rows_.draw();
  if (!values) return false;
  PromptRows::Prompt next = prompts_.prompt(*values);
  group.layout.end_group();
  group.write(columns::kPrompt)[0] = std::move(next.text);
  if (prompts_.has_labels()) group.write(columns::kLabel)[0] = std::move(next.label);
  for (size_t i = 0; i < next.columns.size(); ++i)
    group.write(engine::Column<std::string>{prompts_.columns()[i].c_str(), engine::Extent::kGroup})[0] =
        std::move(next.columns[i]);
  if (!next.messages.is_null()) group.write(columns::kMessages)[0] = next.messages.dump();
  return true;
}

}  // namespace sluice::nodes
