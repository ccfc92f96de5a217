#include "nodes/sources/unpaired_preferences.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "nodes/columns/columns.h"
#include "nodes/models/model_parts.h"
#include "nodes/sources/row_look.h"

namespace sluice::nodes {
namespace {

void find_contradictions_of_labels(const UnpairedPreferencesParams& params, engine::Findings& findings) {
  if (params.prompt_field.empty())
    findings.error("prompt_field", "prompt_field is empty", "name the field that holds the prompt");
  if (params.completion_field.empty()) findings.error("completion_field", "completion_field is empty", "name the field to learn");
  if (params.label_field.empty())
    findings.error("label_field", "label_field is empty", "name the field that is true where the completion is desirable");
  if (params.groups_per_iteration == 1)
    findings.error("groups_per_iteration", "of a single row no other completion is there to compare with", "2 rows at least");
  if (prompt_format(params).chats() && findings.changed("add_end_of_sequence"))
    findings.without_effect("add_end_of_sequence", "add_end_of_sequence has no effect on what a chat template writes",
                            "remove it");
  check_chat_variables(params.chat_variables, /*uses_template=*/true, findings);  // rows may be conversations whatever is written
}

// Before a run: all rows as the run will see them, or the first without the tokenizer.
void look_at_labels(const UnpairedPreferencesParams& params, engine::DataLook& look) {
  if (!has_needed_template(prompt_format(params), params.model, look)) return;
  const ModelText model(params.model, look.folder_of(params.model));
  const LabelledRows labelled(params, model, look.all() ? end_of_texts(params, model) : std::nullopt);
  RowLook rows(params, labelled.fields(), look);
  rows.check([&](data::Dataset::RowId id) -> std::optional<RowCheck::Fault> {
    const std::vector<Json> values = rows.values(id);
    rows.note_unknown(values, id);
    labelled.examples().check(LabelledRows::example(values));
    if (!look.all()) return std::nullopt;
    return labelled.fault_of(values, rows.first_values());
  });
  rows.warn(labelled.examples().plain_prompt(LabelledRows::example(rows.first_values())));
}

}  // namespace

void UnpairedPreferences::describe(engine::Contract<UnpairedPreferencesParams>& c) {
  using P = UnpairedPreferencesParams;
  c.type("unpaired_preferences",
         "prompts with a completion that is desirable or not, from JSON lines, JSON arrays, Parquet or Arrow");
  describe_paths(c);
  describe_prompt(c);
  c.param("completion_field", &P::completion_field).doc("field of the completion: a string or a list of {role, content}");
  c.param("label_field", &P::label_field).doc("field that is true (or 1) where the completion is desirable, else false (or 0)");
  c.model("model", &P::model, engine::ModelUse::kReads).required().doc("the model whose tokenizer and chat template are used");
  c.param("max_tokens", &P::max_tokens).required().at_least(2).doc("the longest sample, prompt and completion").unit("tokens");
  c.param("too_long", &P::too_long).doc("a longer row is an error, or left out and counted");
  c.param("add_end_of_sequence", &P::add_end_of_sequence).doc("put the end of sequence after completions that are strings");
  describe_order(c, "rows");
  c.writes(columns::kPrompt, columns::kTokens, columns::kScore);
  c.needs([](const P& params, engine::NodeNeeds& needs) {
    needs.groups_per_iteration = params.groups_per_iteration;
    needs.samples_per_group = 2;
    needs.worst_sample_tokens = params.max_tokens;
    needs.string_bytes[columns::kPrompt.spec().name] = most_prompt_bytes(prompt_format(params), longest_text(params.path));
  });
  c.check(find_contradictions_of_labels);
  c.data(look_at_labels);
  describe_dropped(c);
}

std::vector<data::JsonlField> LabelledRows::fields() const {
  std::vector<data::JsonlField> fields = examples_.fields();
  for (data::JsonlField& field : fields) field.list_param.clear();
  fields.push_back({label_field_, "label_field", data::FieldKind::kFlag});
  return fields;
}

std::optional<RowCheck::Fault> LabelledRows::fault_of(const std::vector<Json>& values, const std::vector<Json>& first) const {
  const auto says = [](const std::vector<Json>& row) { return row[row.size() - 2].is_array(); };  // its completion
  if (says(values) != says(first))
    return RowCheck::Fault{
        "of this row and the first one is a text and one a conversation, so neither can get the other's completion",
        "write all rows in the same form"};
  return examples_.fault_of(examples_.example(example(values)));
}

LearnedConversation LabelledRows::mismatched(const std::vector<Json>& prompt, const std::vector<Json>& completion) const {
  std::vector<Json> values = example(prompt);
  values.back() = example(completion).back();
  LearnedConversation sample = examples_.example(values);
  if (static_cast<int64_t>(sample.tokens.size()) > max_tokens_) {
    sample.tokens.resize(static_cast<size_t>(max_tokens_));
    std::erase_if(sample.actions, [&](int64_t place) { return place >= max_tokens_; });
  }
  return sample;
}

UnpairedPreferences::UnpairedPreferences(const UnpairedPreferencesParams& params, engine::NodeResources& resources)
    : groups_per_iteration_(params.groups_per_iteration),
      model_(model_text(resources, params.model)),
      labelled_(params, *model_, end_of_texts(params, *model_)),
      rows_(params, labelled_.fields(), resources) {
  const std::vector<Json> first = rows_.all().values({0, 0});
  rows_.check([&](const std::vector<Json>& values) { return labelled_.fault_of(values, first); });
}

// The last row of the data has none after it, where it ends within an iteration.
std::vector<Json> UnpairedPreferences::other_of(int64_t group) {
  const int64_t place = group % groups_per_iteration_;
  const uint64_t first = rows_.drawn() - 1 - static_cast<uint64_t>(place);
  const bool is_last = place + 1 == groups_per_iteration_;
  const auto behind = is_last ? std::nullopt : rows_.at(rows_.drawn());
  return behind ? *behind : *rows_.at(first);
}

bool UnpairedPreferences::next_group(engine::Group& group) {
  const auto values = rows_.draw();
  if (!values) return false;
  LearnedConversation own = labelled_.examples().example(LabelledRows::example(*values));
  const LearnedConversation other = labelled_.mismatched(*values, other_of(group.index));
  for (const LearnedConversation* sample : {&std::as_const(own), &other})
    group.layout.add_sample(static_cast<int64_t>(sample->tokens.size()), sample->actions);
  group.layout.end_group();
  const auto tokens = group.write(columns::kTokens);
  std::ranges::copy(other.tokens, std::ranges::copy(own.tokens, tokens.begin()).out);
  group.write(columns::kScore)[0] = LabelledRows::is_desirable(*values) ? 1.0F : 0.0F;
  group.write(columns::kPrompt)[0] = std::move(own.prompt);
  return true;
}

}  // namespace sluice::nodes
