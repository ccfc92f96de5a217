#include "nodes/preference_pairs.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "base/strings.h"
#include "nodes/columns.h"

namespace sluice::nodes {
namespace {

data::PreferenceFields names_of(const PreferencePairsParams& params) {
  return {.prompt = params.prompt_field, .chosen = params.chosen_field, .rejected = params.rejected_field};
}

std::vector<data::JsonlField> fields_of(const PreferencePairsParams& params) {
  std::vector<data::JsonlField> fields = data::preference_fields(names_of(params));
  if (!params.margin_field.empty()) fields.push_back({params.margin_field, "margin_field"});
  return fields;
}

float margin_of(const Json& value) {
  const std::string text = data::text_of(value);
  const std::string_view digits = trim(text);
  double margin = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), margin);
  if (error != std::errc() || end != digits.data() + digits.size() || !std::isfinite(margin))
    throw UserError("the margin " + sluice::quoted(text) + " is not a number", "write a number, such as 0.5");
  return static_cast<float>(margin);
}

std::optional<RowCheck::Fault> fault_of_sample(const LearnedConversation& sample, const std::string& which, int64_t max_tokens) {
  const auto tokens = static_cast<int64_t>(sample.tokens.size());
  if (tokens > max_tokens)
    return RowCheck::Fault{
        "the " + which + " sample has " + plural(tokens, "token") + ", max_tokens is " + std::to_string(max_tokens),
        "raise max_tokens, or leave such pairs out with too_long = \"drop\"", /*too_long=*/true};
  if (sample.actions.empty())
    return RowCheck::Fault{"the " + which + " completion has no tokens that the assistant says", "leave the line out"};
  if (sample.actions.front() == 0)
    return RowCheck::Fault{"the prompt has no tokens", "the first token of a sample cannot be learned; give a prompt"};
  return std::nullopt;
}

}  // namespace

void PreferencePairs::describe(engine::Contract<PreferencePairsParams>& c) {
  using P = PreferencePairsParams;
  c.type("preference_pairs", "prompts with a better and a worse completion, from files of one JSON object a line");
  describe_paths(c);
  c.param("prompt_field", &P::prompt_field)
      .doc("field of the prompt; where a row has none in the form of its completions, their common beginning is the prompt");
  c.param("chosen_field", &P::chosen_field).doc("field of the better completion: a string or a list of {role, content}");
  c.param("rejected_field", &P::rejected_field).doc("field of the worse completion");
  c.param("margin_field", &P::margin_field).doc("field of a number, by how much it is better; empty: none is read");
  c.param("chat_variables", &P::chat_variables).doc("what else the chat template is told: a JSON object");
  c.model("model", &P::model, engine::ModelUse::kReads).required().doc("the model whose tokenizer and chat template are used");
  c.param("max_tokens", &P::max_tokens)
      .required()
      .at_least(2)
      .doc("the longer of the two samples, prompt and completion")
      .unit("tokens");
  c.param("too_long", &P::too_long).doc("a pair with a longer sample is an error, or left out and counted");
  c.param("add_end_of_sequence", &P::add_end_of_sequence).doc("put the end of sequence behind completions that are strings");
  describe_order(c, "pairs");
  c.writes(columns::kPrompt, columns::kTokens, columns::kScore);
  c.writes_if([](const P& params) { return !params.margin_field.empty(); }, kMargin);
  c.needs([](const P& params, engine::NodeNeeds& needs) {
    needs.groups_per_iteration = params.groups_per_iteration;
    needs.samples_per_group = 2;
    needs.worst_sample_tokens = params.max_tokens;
    needs.string_bytes[columns::kPrompt.spec().name] = longest_text(params.path);
  });
  c.check([](const P& params, engine::Findings& findings) {
    if (params.chosen_field.empty())
      findings.error("chosen_field", "chosen_field is empty", "name the field of the better completion");
    if (params.rejected_field.empty())
      findings.error("rejected_field", "rejected_field is empty", "name the field of the worse completion");
    if (!params.chosen_field.empty() && params.chosen_field == params.rejected_field)
      findings.error("rejected_field", "chosen_field and rejected_field are the same field", "a pair has two completions");
    check_chat_variables(params.chat_variables, /*reads_messages=*/true, findings);
  });
  describe_dropped(c);
}

PreferencePairs::PreferencePairs(const PreferencePairsParams& params, engine::NodeResources& resources)
    : params_(params),
      names_(names_of(params)),
      metrics_(resources.metrics),
      model_(language_model(resources, params.model)),
      chat_variables_(chat_variables(params.chat_variables)),
      rows_(dataset_options(params, resources), fields_of(params)),
      check_(params.too_long) {
  if (params.add_end_of_sequence) end_of_sequence_ = end_of_sequence(*model_, "set add_end_of_sequence = false");
  check_.run(rows_, [this](data::Dataset::RowId id) { return fault_of(id); });
}

bool PreferencePairs::next_group(engine::Group& group) {
  const auto row = cursor_.draw(rows_);
  if (!row) return false;
  Pair next = pair(*row);
  for (const LearnedConversation* sample : {&next.chosen, &next.rejected})
    group.layout.add_sample(static_cast<int64_t>(sample->tokens.size()), sample->actions);
  group.layout.end_group();
  const auto tokens = group.write(columns::kTokens);
  std::ranges::copy(next.rejected.tokens, std::ranges::copy(next.chosen.tokens, tokens.begin()).out);
  group.write(columns::kScore)[0] = 1;
  group.write(columns::kPrompt)[0] = std::move(next.chosen.prompt);
  if (!params_.margin_field.empty()) group.write(kMargin)[0] = next.margin;
  return true;
}

PreferencePairs::Pair PreferencePairs::pair(data::Dataset::RowId id) const {
  const std::vector<Json> values = rows_.values(id);
  const data::PreferencePair row = data::preference_pair(values, names_);
  return {.chosen = learned(row.prompt, row.chosen),
          .rejected = learned(row.prompt, row.rejected),
          .margin = params_.margin_field.empty() ? 0 : margin_of(values.back())};
}

LearnedConversation PreferencePairs::learned(const Json& prompt, const Json& completion) const {
  if (completion.is_array()) return learned_completion(*model_, prompt, completion, chat_variables_);
  return learned_text(*model_, data::text_of(prompt), data::text_of(completion), end_of_sequence_);
}

std::optional<RowCheck::Fault> PreferencePairs::fault_of(data::Dataset::RowId id) const {
  const Pair next = pair(id);
  if (auto fault = fault_of_sample(next.chosen, "chosen", params_.max_tokens)) return fault;
  return fault_of_sample(next.rejected, "rejected", params_.max_tokens);
}

}  // namespace sluice::nodes
