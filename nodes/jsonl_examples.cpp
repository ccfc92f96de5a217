#include "nodes/jsonl_examples.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/strings.h"
#include "nodes/columns.h"

namespace sluice::nodes {
namespace {

std::optional<int64_t> end_of_sequence_of(const LanguageModel& model, bool wanted) {
  if (!wanted) return std::nullopt;
  if (const auto id = model.tokenizer().end_of_sequence()) return id;
  if (!model.config().end_of_sequence.empty()) return model.config().end_of_sequence.front();
  throw UserError("model '" + model.name() + "' names no end of sequence, in tokenizer_config.json or config.json",
                  "name one there (eos_token), or set add_end_of_sequence = false");
}

}  // namespace

void JsonlExamples::describe(engine::Contract<JsonlExamplesParams>& c) {
  using P = JsonlExamplesParams;
  c.type("jsonl_examples", "prompts with completions to learn, from files of one JSON object a line");
  describe_paths(c);
  c.param("prompt_field", &P::prompt_field).doc("field of the prompt");
  c.param("completion_field", &P::completion_field).doc("field of the text to learn");
  c.model("model", &P::model, engine::ModelUse::kReads).required().doc("the model whose tokenizer is used");
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
    needs.string_bytes[columns::kPrompt.spec().name] = longest_text(params.path);
  });
  c.check([](const P& params, engine::Findings& findings) {
    if (params.prompt_field.empty())
      findings.error("prompt_field", "prompt_field is empty", "name the field that holds the prompt");
    if (params.completion_field.empty())
      findings.error("completion_field", "completion_field is empty", "name the field to learn");
  });
  describe_dropped(c);
}

JsonlExamples::JsonlExamples(const JsonlExamplesParams& params, engine::NodeResources& resources)
    : params_(params),
      metrics_(resources.metrics),
      model_(language_model(resources, params.model)),
      end_of_sequence_(end_of_sequence_of(*model_, params.add_end_of_sequence)),
      rows_(dataset_options(params, resources),
            {{params.prompt_field, "prompt_field"}, {params.completion_field, "completion_field"}}),
      check_(params.too_long) {
  check_.run(rows_, [this](data::Dataset::RowId id) { return fault_of(id); });
}

bool JsonlExamples::next_group(engine::Group& group) {
  const auto row = rows_.row_at(static_cast<uint64_t>(group.iteration * params_.groups_per_iteration + group.index));
  if (!row) return false;
  Example next = example(*row);
  group.layout.add_sample(static_cast<int64_t>(next.tokens.size()), next.actions);
  group.layout.end_group();
  group.write(columns::kPrompt)[0] = std::move(next.prompt);
  std::ranges::copy(next.tokens, group.write(columns::kTokens).begin());
  return true;
}

JsonlExamples::Example JsonlExamples::example(data::Dataset::RowId id) const {
  std::vector<std::string> texts = rows_.texts(id);
  Example example{.prompt = std::move(texts[0]), .tokens = {}};
  example.tokens = model_->tokenizer().encode(example.prompt, /*add_special=*/true);
  const size_t prompt_tokens = example.tokens.size();
  const std::vector<int64_t> completion = model_->tokenizer().encode(texts[1]);
  example.tokens.insert(example.tokens.end(), completion.begin(), completion.end());
  if (end_of_sequence_) example.tokens.push_back(*end_of_sequence_);
  example.actions = static_cast<int64_t>(example.tokens.size() - prompt_tokens);
  return example;
}

std::optional<RowCheck::Fault> JsonlExamples::fault_of(data::Dataset::RowId id) const {
  const Example next = example(id);
  const auto tokens = static_cast<int64_t>(next.tokens.size());
  if (tokens > params_.max_tokens)
    return RowCheck::Fault{"the example has " + plural(tokens, "token") + ", max_tokens is " + std::to_string(params_.max_tokens),
                           "raise max_tokens, or leave such examples out with too_long = \"drop\"", /*too_long=*/true};
  if (next.actions == tokens)
    return RowCheck::Fault{"the prompt has no tokens", "the first token of a sample cannot be learned; give a prompt"};
  if (next.actions == 0)
    return RowCheck::Fault{"the completion has no tokens, so there is nothing to learn",
                           "leave the line out, or set add_end_of_sequence = true"};
  return std::nullopt;
}

}  // namespace sluice::nodes
