#include "nodes/sources/preference_pairs.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "base/text/strings.h"
#include "nodes/columns/columns.h"
#include "nodes/models/model_parts.h"
#include "nodes/sources/equal_completions.h"
#include "nodes/sources/row_look.h"

namespace sluice::nodes {
namespace {

float margin_of(const Json& value) {
  const std::string text = data::text_of(value);
  const std::string_view digits = trim(text);
  double margin = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), margin);
  if (error != std::errc() || end != digits.data() + digits.size() || !std::isfinite(margin))
    throw UserError("the margin " + sluice::quoted(text) + " is not a number", "write a number, such as 0.5");
  const auto narrow = static_cast<float>(margin);
  if (!std::isfinite(narrow))
    throw UserError("the margin " + sluice::quoted(text) + " is too large", "a number of the size of scores, such as 0.5");
  return narrow;
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

// The completion with what `longer` has beyond `prompt`, which it begins with, in front of it.
Json with_rest_of(const Json& prompt, const Json& longer, const Json& completion) {
  if (prompt.is_string())
    return longer.get<std::string>().substr(prompt.get_ref<const std::string&>().size()) + completion.get<std::string>();
  Json rest = Json::array();
  for (size_t i = prompt.size(); i < longer.size(); ++i) rest.push_back(longer[i]);
  return joined(rest, completion);
}

// Where the prompt is what a pair has in common, several with the same better completion may have other ones: then it is the
// shortest, which all of them begin with. What only some had in common would count in some of the samples alone.
void take_common_prompt(std::vector<data::PreferencePair>& pairs) {
  const auto length = [](const data::PreferencePair& pair) {
    return pair.prompt.is_string() ? pair.prompt.get_ref<const std::string&>().size() : pair.prompt.size();
  };
  const Json shortest = std::ranges::min_element(pairs, {}, length)->prompt;
  for (data::PreferencePair& pair : pairs) {
    for (Json* completion : {&pair.chosen, &pair.rejected}) *completion = with_rest_of(shortest, pair.prompt, *completion);
    pair.prompt = shortest;
  }
}

void find_contradictions_of_pairs(const PreferencePairsParams& params, engine::Findings& findings) {
  if (params.ranked_fields.size() == 1)
    findings.error("ranked_fields", "ranked_fields names one completion", "at least two, the best first");
  for (const char* key : {"chosen_field", "rejected_field"}) {
    if (!params.ranked_fields.empty() && findings.changed(key))
      findings.without_effect(key, std::string(key) + " has no effect beside ranked_fields", "remove one of them");
  }
  if (params.chosen_field.empty())
    findings.error("chosen_field", "chosen_field is empty", "name the field of the better completion");
  if (params.rejected_field.empty())
    findings.error("rejected_field", "rejected_field is empty", "name the field of the worse completion");
  if (!params.chosen_field.empty() && params.chosen_field == params.rejected_field)
    findings.error("rejected_field", "chosen_field and rejected_field are the same field", "a pair has two completions");
  check_chat_variables(params.chat_variables, /*uses_template=*/true, findings);  // rows may be conversations whatever is written
}

// Before a run: all rows as the run will see them, or the first without the tokenizer.
void look_at_pairs(const PreferencePairsParams& params, engine::DataLook& look) {
  if (!has_needed_template(prompt_format(params), params.model, look)) return;
  const ModelText model(params.model, look.folder_of(params.model));
  const PairRows pairs(params, model, look.all() ? end_of_texts(params, model) : std::nullopt);
  RowLook rows(params, pairs.fields(), look);
  EqualCompletions equal;
  rows.check([&](data::Dataset::RowId id) -> std::optional<RowCheck::Fault> {
    const std::vector<Json> values = rows.values(id);
    rows.note_unknown(values, id);
    equal.look_at(std::span(values).first(pairs.completion_fields()), rows.rows(), id);
    pairs.check(values);
    if (!look.all()) return std::nullopt;
    return pairs.fault_of(pairs.pair(values));
  });
  rows.warn(pairs.plain_prompt(rows.first_values()));
  equal.warn(look);
}

}  // namespace

void PreferencePairs::describe(engine::Contract<PreferencePairsParams>& c) {
  using P = PreferencePairsParams;
  c.type("preference_pairs", "prompts with a better and a worse completion, from JSON lines, JSON arrays, Parquet or Arrow");
  describe_paths(c);
  describe_prompt(c);
  c.param("chosen_field", &P::chosen_field).doc("field of the better completion: a string or a list of {role, content}");
  c.param("rejected_field", &P::rejected_field).doc("field of the worse completion");
  c.param("ranked_fields", &P::ranked_fields)
      .doc("instead of these two: fields of any number of completions, the best first; empty: those two");
  c.param("margin_field", &P::margin_field).doc("field of a number, by how much it is better; empty: none is read");
  c.model("model", &P::model, engine::ModelUse::kReads).required().doc("the model whose tokenizer and chat template are used");
  c.param("max_tokens", &P::max_tokens)
      .required()
      .at_least(2)
      .doc("the longest of the samples, prompt and completion")
      .unit("tokens");
  c.param("too_long", &P::too_long).doc("a pair with a longer sample is an error, or left out and counted");
  c.param("add_end_of_sequence", &P::add_end_of_sequence).doc("put the end of sequence after completions that are strings");
  describe_order(c, "pairs");
  c.writes(columns::kPrompt, columns::kTokens, columns::kScore);
  c.writes_if([](const P& params) { return !params.margin_field.empty(); }, columns::kMargin);
  c.needs([](const P& params, engine::NodeNeeds& needs) {
    needs.groups_per_iteration = params.groups_per_iteration;
    needs.samples_per_group = std::max<int64_t>(2, static_cast<int64_t>(params.ranked_fields.size()));
    needs.worst_sample_tokens = params.max_tokens;
    needs.string_bytes[columns::kPrompt.spec().name] = most_prompt_bytes(prompt_format(params), longest_text(params.path));
  });
  c.check(find_contradictions_of_pairs);
  c.data(look_at_pairs);
  describe_dropped(c);
}

PairRows::PairRows(const PreferencePairsParams& params, const ModelText& model, std::optional<int64_t> end_of_sequence)
    : params_(params),
      model_(model),
      chat_extras_(chat_extras(params.chat_variables, params.tools)),
      reader_(prompt_format(params), {.kind = data::FieldKind::kTextOrMessages, .required = false}),
      end_of_sequence_(end_of_sequence) {}

std::vector<data::JsonlField> PairRows::fields() const {
  std::vector<data::JsonlField> fields;
  for (size_t i = 0; i < params_.ranked_fields.size(); ++i)
    fields.push_back({params_.ranked_fields[i], "ranked_fields", data::FieldKind::kTextOrMessages, /*required=*/i < 2});
  if (!is_ranked())
    fields = data::preference_fields({.prompt = "", .chosen = params_.chosen_field, .rejected = params_.rejected_field});
  fields.insert(fields.end(), reader_.fields().begin(), reader_.fields().end());
  if (!params_.margin_field.empty()) fields.push_back({params_.margin_field, "margin_field"});
  return fields;
}

// The prompt of the row is a turn only where the completions are texts: of conversations it may be the beginning already.
data::PreferencePair PairRows::row(const std::vector<Json>& values, size_t other) const {
  const std::span<const Json> of_prompt = std::span(values).subspan(completion_fields(), reader_.fields().size());
  Json prompt = reader_.read(of_prompt), chosen = values[0], rejected = values[other];
  if (is_ranked() && prompt.is_null())
    throw UserError("ranked_fields need a prompt, and this row has none", "name its field: prompt_field");
  if (reader_.format().chats() && !chosen.is_array() && !rejected.is_array()) {
    if (prompt.is_null()) throw UserError("chat = true needs a prompt, and this row has none", "name its field, or chat = false");
    for (Json* completion : {&chosen, &rejected}) *completion = one_turn("assistant", data::text_of(*completion));
  } else if (reader_.format().chats() && !of_prompt.empty() && !of_prompt.front().is_array()) {
    prompt = nullptr;
  }
  data::PreferencePair pair = data::preference_pair({std::move(chosen), std::move(rejected), std::move(prompt)}, {});
  if (pair.prompt.is_array()) pair.prompt = reader_.with_system(std::move(pair.prompt), of_prompt);
  return pair;
}

std::vector<size_t> PairRows::others(const std::vector<Json>& values) const {
  std::vector<size_t> places;
  for (size_t place = 1; place < completion_fields(); ++place)
    if (!values[place].is_null()) places.push_back(place);
  return places;
}

PairRows::Pair PairRows::pair(const std::vector<Json>& values) const {
  Pair pair{.fields = others(values), .completions = {}};
  std::vector<data::PreferencePair> rows;
  for (const size_t other : pair.fields) rows.push_back(row(values, other));
  take_common_prompt(rows);
  pair.fields.insert(pair.fields.begin(), 0);
  for (const data::PreferencePair& texts : rows) {
    if (pair.completions.empty()) pair.completions.push_back(learned(texts.prompt, texts.chosen));
    pair.completions.push_back(learned(texts.prompt, texts.rejected));
  }
  if (!params_.margin_field.empty()) pair.margin = margin_of(values.back());
  return pair;
}

LearnedConversation PairRows::learned(const Json& prompt, const Json& completion) const {
  return learned_answer(model_, {prompt, completion}, chat_extras_, end_of_sequence_);
}

void PairRows::check(const std::vector<Json>& values) const {
  if (!params_.margin_field.empty()) margin_of(values.back());
  for (const size_t other : others(values)) {
    const data::PreferencePair pair = row(values, other);
    if (!pair.prompt.is_array()) continue;
    for (const Json* completion : {&pair.chosen, &pair.rejected})
      check_conversation(model_, joined(pair.prompt, *completion), chat_extras_);
  }
}

std::optional<std::string> PairRows::plain_prompt(const std::vector<Json>& values) const {
  const Json prompt = row(values, 1).prompt;
  return prompt.is_string() ? std::optional(prompt.get<std::string>()) : std::nullopt;
}

std::string PairRows::name_of_completion(size_t place) const {
  if (is_ranked()) return sluice::quoted(params_.ranked_fields[place]);
  return place == 0 ? "chosen" : "rejected";
}

std::optional<RowCheck::Fault> PairRows::fault_of(const Pair& pair) const {
  for (size_t i = 0; i < pair.completions.size(); ++i)
    if (auto fault = fault_of_sample(pair.completions[i], name_of_completion(pair.fields[i]), params_.max_tokens)) return fault;
  return std::nullopt;
}

PreferencePairs::PreferencePairs(const PreferencePairsParams& params, engine::NodeResources& resources)
    : has_margin_(!params.margin_field.empty()),
      model_(model_text(resources, params.model)),
      pairs_(params, *model_, end_of_texts(params, *model_)),
      rows_(params, pairs_.fields(), resources) {
  rows_.check([this](const std::vector<Json>& values) { return pairs_.fault_of(pairs_.pair(values)); });
}

bool PreferencePairs::next_group(engine::Group& group) {
  const auto values = rows_.draw();
  if (!values) return false;
  PairRows::Pair next = pairs_.pair(*values);
  for (const LearnedConversation& sample : next.completions)
    group.layout.add_sample(static_cast<int64_t>(sample.tokens.size()), sample.actions);
  group.layout.end_group();
  auto tokens = group.write(columns::kTokens).begin();
  const auto scores = group.write(columns::kScore);
  for (size_t i = 0; i < next.completions.size(); ++i) {
    tokens = std::ranges::copy(next.completions[i].tokens, tokens).out;
    scores[i] = static_cast<float>(next.completions.size() - 1 - i);
  }
  group.write(columns::kPrompt)[0] = std::move(next.completions.front().prompt);
  if (has_margin_) group.write(columns::kMargin)[0] = next.margin;
  return true;
}

}  // namespace sluice::nodes
